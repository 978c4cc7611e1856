"""The engine of a queue, as the laws of queues need it, and the steps of their stories."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ...model.claim import Leased, State
from ...model.demand import Cell, Closed, Demand
from ...model.workload import Kind
from ...stores.queue.queue import NewItem, Queue

LEASE = 30.0
MAX_PAYLOAD = 1 << 20
MAIL = Kind("mail", 2)
URGENT = Kind("mail", 0)
LATER = Kind("mail", 3)
REPORT = Kind("report", 2)


class QueueEngine(Protocol):
    """A queue on its engine, with a clock that tests move."""

    @property
    def queue(self) -> Queue:
        """The open queue, empty at first. It refuses payloads beyond MAX_PAYLOAD bytes."""

    def now(self) -> float:
        """The store's wall clock, seconds."""

    async def pass_time(self, seconds: float) -> None:
        """Moves the store's clock by `seconds`: the test's own clock, or a sleep. A negative time is a clock that
        jumped back; an engine that cannot do so does nothing."""

    async def reopen(self) -> None:
        """Closes the store and opens it again over what it kept; `queue` may be another object then."""


def wanting(
    *kinds: Kind, each: int = 1000, total: int = 1000, max_bytes: int = 1 << 24, closed: Sequence[Closed] = ()
) -> Demand:
    """A demand for the cells of these kinds, or if none is named for those of this file's kinds."""
    cells = {Cell(kind.function, kind.priority): each for kind in kinds or (MAIL, URGENT, LATER, REPORT)}
    return Demand(cells, frozenset(closed), total, max_bytes)


async def put(engine: QueueEngine, *items: NewItem) -> list[str]:
    """Submits items and returns their ids."""
    return [each.id for each in await engine.queue.submit(items)]


async def take(engine: QueueEngine, demand: Demand | None = None, seconds: float = LEASE) -> Leased:
    """Makes a claim that must find something."""
    leased = await engine.queue.lease(demand or wanting(), seconds, 0)
    assert leased is not None, "nothing was due"
    return leased


async def nothing(engine: QueueEngine, demand: Demand | None = None) -> bool:
    """Whether nothing is due."""
    return await engine.queue.lease(demand or wanting(), LEASE, 0) is None


async def state(engine: QueueEngine, id: str) -> State:
    [status] = await engine.queue.status([id])
    assert status is not None
    return status.state


async def ages(engine: QueueEngine) -> dict[tuple[str, int], tuple[int, int]]:
    """Seconds that the oldest due item has waited and the highest attempt, by function and priority."""
    found = await engine.queue.ageing()
    assert len(found) == len({each[:2] for each in found}), "a function and priority is told once"
    return {(each.function, each.priority): (round(each.waited), each.attempts) for each in found}
