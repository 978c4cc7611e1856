"""Items that the version of their function at some worker refused, and by which versions: until they end, or are too
many to be remembered. Who is forgotten is refused once more, which costs nothing."""

from __future__ import annotations

from collections.abc import Mapping

from ..model.outcome import Outcome
from ..model.workload import Ended, Extra, Flight, Outcomes
from .roster import Roster
from .rules.explain import Reason
from .rules.flow import ID, KIND
from .rules.misfit import AGAIN, left_to_try
from .sessions import WorkerSession

#: Items that are remembered.
MOST = 1 << 16


class Misfits:
    """The items that were refused somewhere. Invariant: at most MOST are remembered, those that were refused last."""

    def __init__(self, roster: Roster, workers: Mapping[str, WorkerSession]) -> None:
        self.refused: dict[str, frozenset[str]] = {}  # id → versions
        self._roster = roster
        self._workers = workers

    def review(self, worker: WorkerSession, outcomes: Outcomes) -> None:
        """Hands back, instead of ending, items that the worker's version refused while another one is attached."""
        if self.refused:
            for ref in (*outcomes.succeeded, *(ref for ref, end in outcomes.ended.items() if not end.misfit)):
                item = worker.open.get(ref)
                if item is not None:
                    self.refused.pop(item[ID], None)
        for ref, end in outcomes.ended.items():
            item = worker.open.get(ref) if end.misfit else None
            if item is None:
                continue
            function = item[KIND].function
            refused = self.refused.pop(item[ID], frozenset()) | {worker.versions.get(function, "")}
            if left_to_try(refused, self._attached(function)):
                self.refused[item[ID]] = refused
                outcomes.ended[ref] = Ended(Outcome.HELD, f"{Reason.MISFIT.value}: {end.reason}", after=AGAIN)
            elif len(refused) > 1:
                end.reason = f"{end.reason} (all {len(refused)} attached versions refuse it)"
        while len(self.refused) > MOST:
            del self.refused[next(iter(self.refused))]

    @staticmethod
    def came_back(end: Ended) -> bool:
        """Whether this is the end of an item that another version is to try."""
        return end.outcome == Outcome.HELD and end.reason.startswith(f"{Reason.MISFIT.value}:")

    def mark(self, flight: Flight, now: float) -> None:
        """Marks items of a flight that were refused before, so that they go to other versions."""
        if not self.refused or self.refused.keys().isdisjoint(flight.ids):
            return
        for index, (id, kind) in enumerate(zip(flight.ids, flight.kinds, strict=True)):
            refused = self.refused.get(id)
            if refused is not None:
                flight.extras.setdefault(index, Extra()).refused = refused
                self._roster.set_apart(kind.function, refused, now)

    def _attached(self, function: str) -> set[str]:
        return {
            worker.versions.get(function, "")
            for worker in self._workers.values()
            if worker.greeted and not worker.draining and function in worker.specs
        }
