"""Rows of an outbox that go on now, and those that wait for their function to be registered.

Only a function that somebody runs is submitted, and what waits holds up no other row but the later ones of its key.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple


class RelayStep(NamedTuple):
    """Indexes of the rows that go, in order; the functions that rows wait for."""

    go: list[int]
    unknown: set[str]


def step(functions: Sequence[str], keys: Sequence[str], registered: Collection[str] | None) -> RelayStep:
    """Of rows in their order, with each one's function and key (empty: none). `registered` None: nobody can say, and
    all go."""
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
    """Of the functions that rows waited for, those that are still not there."""
    return set() if registered is None else {name for name in waiting if name not in registered}
