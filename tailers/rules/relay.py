"""Rows of an outbox: which go on now, and which wait for their function to be registered.

Only a row whose function some worker runs is submitted, and a row that waits holds up no others but the later ones of
its key.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple


class RelayStep(NamedTuple):
    """Indexes of the rows that go, in order; the functions that rows wait for."""

    go: list[int]
    unknown: set[str]


def step(functions: Sequence[str], keys: Sequence[str], registered: Collection[str] | None) -> RelayStep:
    """The step of these rows in their order, by each one's function and key (empty: none). `registered` None: nobody
    can say, and all go."""
    if registered is None:
        return RelayStep(list(range(len(functions))), set())
    go: list[int] = []
    unknown: set[str] = set()
    shut: set[str] = set()
    for index, (function, key) in enumerate(zip(functions, keys, strict=True)):
        if function not in registered:
            unknown.add(function)
            if key:
                shut.add(key)
        elif key not in shut:
            go.append(index)
    return RelayStep(go, unknown)


def still_waiting(waiting: Collection[str], registered: Collection[str] | None) -> set[str]:
    """The functions in `waiting`, for which rows waited, that are still not registered."""
    return set() if registered is None else {name for name in waiting if name not in registered}
