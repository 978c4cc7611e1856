"""Another try of what failed in a tree: THE rule of how much one step takes along, and of what its tree is known by."""

from __future__ import annotations

#: Items of one step, and bytes of what they were given behind which it ends.
TAKEN, TAKEN_BYTES = 1000, 8 << 20


def definition_of(former: str) -> str:
    """The definition of the tree that is made of the failed items of a tree: whoever asks for it again is known by it.
    That of any other tree is JSON."""
    return f"failed items of {former}"
