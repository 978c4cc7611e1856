"""The order of tests where several processes of pytest share them (`make test`).

Each process gets a stretch of the list, and who has nothing left takes half of what another still has, from its end.
So that none is left alone with something long at the end, what takes long is dealt to all of them as the beginnings of
their stretches, and what is over in an instant comes last. Each begins with another kind: tests that calculate run
beside tests that wait, and those that start the whole platform beside others.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

import pytest

T = TypeVar("T")
#: Folders of tests/ whose tests take long; all others are over in an instant.
LONG = ("simulation", "e2e", "trust", "integration", "conformance")


def dealt(kinds: Sequence[Sequence[Sequence[T]]], rest: Sequence[T], processes: int) -> list[T]:
    """Deals the bundles of each kind in turn to each process, none of them torn, and the rest so that all have equally
    many. Returns the list of which each process gets its part; one with more than its part leaves the end of it to the
    next."""
    hands: list[list[list[T]]] = [[[] for _ in kinds] for _ in range(processes)]
    number = 0
    for kind, bundles in enumerate(kinds):
        for bundle in bundles:
            hands[number % processes][kind].extend(bundle)
            number += 1
    found: list[T] = []
    total, left = sum(len(bundle) for bundles in kinds for bundle in bundles) + len(rest), list(rest)
    for number, hand in enumerate(hands):
        first = number % len(kinds)
        mine = [each for kind in [*hand[first:], *hand[:first]] for each in kind]
        room = max(0, (total - len(found)) // (processes - number) - len(mine))
        found += mine + left[:room]
        del left[:room]
    return found + left


def deal(items: list[pytest.Item], root: Path, processes: int) -> None:
    """Puts the tests in that order. Those of a file stay together, since they may share a server; a world of the
    simulation shares nothing."""
    kinds: list[dict[str, list[pytest.Item]]] = [{} for _ in LONG]
    rest = []
    for item in items:
        folder = item.path.relative_to(root).parts[0]
        if folder in LONG:
            key = item.nodeid if folder == "simulation" else str(item.path)
            kinds[LONG.index(folder)].setdefault(key, []).append(item)
        else:
            rest.append(item)
    items[:] = dealt([[*bundles.values()] for bundles in kinds], rest, processes)
