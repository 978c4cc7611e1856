"""Placement: the least loaded of the able pools, never beyond the limit a worker gave for it.

A pool is a set of executors of one worker that runs some functions. Functions that the same pools can run share one
`Able`, and wait in its ring; so a full pool costs one look, not one look per function. Items that must run alone have
pools of their own, so that they neither wait behind the others nor keep them waiting.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple


class PoolLimits(NamedTuple):
    """A pool as a worker announces it. In an update no functions, and not `alone`, mean as before."""

    name: str
    functions: Collection[str]
    slots: int
    limit: int
    alone: bool = False
    failure: str = ""


class WorkerPool:
    """A pool of a worker, as the scheduler counts it. Invariant: 0 ≤ assigned; the scheduler assigns only while
    assigned < limit. `limit` counts the worker's local buffer too. A shut pool (its worker is away, silent or draining)
    has no room; its items stay assigned. `alone`: it gives each item a process to itself. `parents` are given to it and
    wait for other work, so that they take no room; when they go on they do, beyond the limit if need be. `spare` is the
    credit for them (rules/credit.py). In a slow start (FL16) `limit` is a rising part of `full`, which its worker
    said. `failure`: why processes there cannot load its functions."""

    __slots__ = (
        "alone",
        "assigned",
        "failure",
        "full",
        "functions",
        "limit",
        "name",
        "parents",
        "shut",
        "slots",
        "spare",
        "taken",
        "worker",
    )

    def __init__(self, worker: Any, name: str) -> None:
        self.worker = worker
        self.name = name
        self.functions: frozenset[str] = frozenset()
        self.slots = 0
        self.limit = self.full = 0
        self.alone = False
        self.failure = ""
        self.assigned = 0
        self.parents = 0
        self.spare = 0
        self.shut = False
        self.taken: list[Any] = []  # picked in this turn, not yet made into assignments

    def announced(self, limits: PoolLimits) -> None:
        """Takes the limits that its worker announces now."""
        self.functions = frozenset(limits.functions) or self.functions
        share = self.limit / self.full if self.limit < self.full else 1.0
        kept = self.full > 0 == self.limit  # from all work (rules/outlier.py)
        self.slots, self.full = limits.slots, limits.limit
        self.alone = self.alone or limits.alone
        self.failure = limits.failure
        if not kept:
            self.admit(share)

    def admit(self, share: float) -> None:
        """Admits such a share of the limit that its worker announced."""
        self.limit = self.full if share >= 1 else min(self.full, max(1, int(self.full * share)))

    @property
    def able(self) -> bool:
        """Whether its worker has a process that can run its functions."""
        return self.full > 0 or not self.failure

    @property
    def room(self) -> int:
        """Number of items that it can still be given."""
        return 0 if self.shut else max(0, self.limit - self.assigned)

    @property
    def load(self) -> float:
        """Assigned items by limit: comparable between pools of different size."""
        return self.assigned / self.limit if self.limit else 1.0


def room_of(pools: Sequence[WorkerPool]) -> int:
    """Number of items that all of them together can be given."""
    return sum([pool.room for pool in pools])


def limit_of(pools: Sequence[WorkerPool]) -> int:
    """Number of items that all of them together can hold."""
    return sum([pool.limit for pool in pools])


def slots_of(pools: Sequence[WorkerPool]) -> int:
    """Number of items that all of them together can run at once."""
    return sum([pool.slots for pool in pools if not pool.shut])


def taken_of(pools: Sequence[WorkerPool]) -> int:
    """Number of items that all of them together have."""
    return sum([pool.assigned for pool in pools if not pool.shut])


def place(pools: Sequence[WorkerPool], count: int) -> list[tuple[WorkerPool, int]]:
    """Divides `count` items (at most `room_of(pools)`) so that the least loaded get them first, in even parts."""
    if len(pools) == 1:
        return [(pools[0], count)]
    part = -(-count // len(pools))
    placed = dict.fromkeys(pools, 0)
    left = count
    while left:
        able = [pool for pool in pools if not pool.shut and pool.limit > pool.assigned + placed[pool]]
        if not able:
            break
        pool = min(able, key=lambda pool: (pool.assigned + placed[pool]) / pool.limit)
        here = min(part, left, pool.limit - pool.assigned - placed[pool])
        placed[pool] += here
        left -= here
    return [(pool, number) for pool, number in placed.items() if number]
