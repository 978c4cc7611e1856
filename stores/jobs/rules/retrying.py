"""Another try of what failed in a tree: THE rule of how much one step takes along, and of what its tree is known by.

What gathers is tried again as any item is, with the list that it was given, where nothing before it failed. Else it is
made anew of what was tried again before it. A gather of such a tree with nothing before it makes no item: it would be
given an empty list, and what came of that would pass for a result.

Where the list did not fit (`gathering.py`), what is tried again reads the results in the former tree. So a tree of
which a gather failed is not forgotten before its other try is.
"""

from __future__ import annotations

#: Items of one step, and bytes of what they were given behind which it ends.
TAKEN, TAKEN_BYTES = 1000, 8 << 20


def definition_of(former: str) -> str:
    """The definition of the tree that is made of the failed items of a tree: whoever asks for it again is known by it.
    That of any other tree is JSON."""
    return f"{_MADE_OF}{former}"


def is_made_of_failed(definition: str) -> bool:
    """Whether a tree of this definition is another try of what failed in one."""
    return definition.startswith(_MADE_OF)


_MADE_OF = "failed items of "
