"""Another try of the failed items of a tree: THE rule of how many one step copies, and of the mark of such a tree.

A failed gathering item is tried again like any other, with the list that it was given, if no item before it failed.
Otherwise it is made again from the items tried again before it. A gather of the new tree that has no such items before
it makes no item: its list would be empty, and its result would pass for a real one.

If the list did not fit (`gathering.py`), the item that is tried again reads the results in the former tree. So a tree
with a failed gather is not removed before its other try is.
"""

from __future__ import annotations

#: Most items of one step, and bytes of their payloads after which it ends.
TAKEN, TAKEN_BYTES = 1000, 8 << 20


def definition_of(former: str) -> str:
    """The definition of the tree that is made of a tree's failed items; a repeated request finds the tree by it.
    Definitions of other trees are JSON."""
    return f"{_MADE_OF}{former}"


def is_made_of_failed(definition: str) -> bool:
    """Whether a tree with this definition is another try of a tree's failed items."""
    return definition.startswith(_MADE_OF)


_MADE_OF = "failed items of "
