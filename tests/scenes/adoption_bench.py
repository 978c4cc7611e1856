"""A scheduler's core with one worker, for stories of adoption."""

from __future__ import annotations

from tailrace.model.function_spec import FunctionSpec
from tailrace.model.lease import LeaseSizes
from tailrace.model.workload import Flight, Kind, Outcomes, Owned, ref
from tailrace.scheduler.config import SchedulerConfig
from tailrace.scheduler.core import Core
from tailrace.scheduler.rules.placement import PoolLimits
from tailrace.scheduler.sessions import Adoption, TailerSession

SIZES = LeaseSizes()
ROW = ("orders", "")
WALL = 1000.0
KEPT = 28.0  # until when what was set aside is kept at least


class Bench:
    """A core with one worker and the clock in hand."""

    def __init__(self, limit: int = 10) -> None:
        self.core = Core(SchedulerConfig(), SIZES, ready=True)
        self.now = 0.0
        self.worker = self.core.attach_worker("w", "w", 0.0)
        self.core.worker_connected(self.worker, [FunctionSpec("f")], [PoolLimits("default", ("f",), limit, limit)], 0.0)

    def owner(self, name: str, epoch: int, version: int) -> TailerSession:
        """A session that shows the row."""
        tailer = self.session(name)
        self.core.adoptions.show(tailer, ROW, epoch, version)
        return tailer

    def session(self, name: str) -> TailerSession:
        tailer = self.core.attach_tailer(name, name, self.now)
        self.core.tailer_connected(tailer)
        return tailer

    def push(self, tailer: TailerSession, number: int, epoch: int, positions: list[int]) -> None:
        ids = [str(position) for position in positions]
        flight = Flight(number, epoch * 100 + number, [Kind("f")] * len(ids), ids, [b""] * len(ids), [1] * len(ids))
        flight.owned = Owned(*ROW, epoch, "0", positions)
        self.core.push(tailer, flight, tailer.requests.send(self.now), SIZES.scheduler, self.now)
        self.core.turn(self.now, WALL)

    def sent(self) -> dict[int, int]:
        """Takes all that the worker is sent: ref → position."""
        found = {}
        while (made := self.core.assignment(self.worker, self.now)) is not None:
            found.update({ref(made[0].flight, index): int(item[2]) for index, item in enumerate(made[0].items)})
        return found

    def ask(self, tailer: TailerSession, epoch: int, version: int) -> Adoption:
        self.core.adoptions.ask(tailer, ROW, epoch, version, WALL)
        return tailer.adoptions.pop()

    def end(self, outcomes: Outcomes) -> None:
        self.core.report(self.worker, outcomes, self.now, WALL)

    def die(self, tailer: TailerSession) -> None:
        self.core.tailer_away(tailer, self.now)

    def renew(self, tailer: TailerSession, flights: list[int]) -> None:
        self.core.granted(tailer, tailer.requests.send(self.now), SIZES.scheduler, flights)

    def grants(self) -> dict[int, float]:
        self.core.lease_requested(self.worker, self.worker.granted.number + 1, self.now)
        return dict(self.core.grants(self.worker, self.now))


def positions(answer: Adoption) -> list[int]:
    return sorted(position for flight in answer.flights for position in flight.positions)


def refs(answer: Adoption) -> dict[int, int]:
    """Position → ref in the adopting session."""
    return {
        position: ref(flight.number, index)
        for flight in answer.flights
        for index, position in zip(flight.indexes, flight.positions, strict=True)
    }
