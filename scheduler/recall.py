"""Recall: items are taken back from where they are, before they end by themselves: cancelled, revoked, lapsed, expired.

Rare, so it may look everywhere; the hot path keeps no index for it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from ..model.outcome import Outcome
from ..model.workload import INDEX_BITS
from .intake import Intake
from .returns import HELD, Returns, ended
from .roster import Roster
from .rules.explain import Reason
from .rules.flow import REF, SESSION, Item, expired
from .sessions import TailerSession, WorkerSession


class Recall:
    """The way back of items that did not end by themselves. Invariant: a revoked item keeps the deadline it has where
    it runs; it is never renewed again."""

    def __init__(self, roster: Roster, workers: dict[str, WorkerSession], intake: Intake, returns: Returns) -> None:
        self._roster = roster
        self._workers = workers
        self._intake = intake
        self._returns = returns

    def expire(self, items: list[Item]) -> None:
        """Ends items whose time to start has passed, already out of their lanes."""
        self._returns.end(items, ended(Outcome.EXPIRED, Reason.EXPIRED))

    def look(self, grace: float, now: float, wall: float) -> bool:
        """Sends back items that nobody can run, after a grace, and ends expired ones. Returns whether a function lost
        its last worker so long ago that nothing of it is wanted any more."""
        stranded = False
        for function in self._roster.functions.values():
            if function.gone_since is not None and now - function.gone_since >= grace:
                stranded = stranded or function.capacity > 0
                for room in function.rooms:
                    left = room.remove(lambda item: not item[SESSION].patient) if room.items else []
                    self._returns.end(left, HELD[Reason.NO_WORKER])
            if function.dated:
                dated = [room for room in function.rooms if room.dated]
                for room in dated:
                    self.expire(room.remove(lambda item: expired(item, wall)))
                function.dated = any(room.items for room in dated)
        return stranded

    def abandon(self, tailer: TailerSession, flights: Collection[int]) -> None:
        """Takes back the items of flights that nobody waits for any more."""
        gone = set(flights)
        if gone:
            self.revoke(lambda item: item[SESSION] is tailer and item[REF] >> INDEX_BITS in gone)

    def lapse(self, tailer: TailerSession, now: float) -> None:
        """Ends flights whose lease is over: waiting items go back, running ones are not renewed any more and are
        cancelled."""
        over = set(tailer.held.lapse(now))
        if over:

            def lapsed(item: Item) -> bool:
                return item[SESSION] is tailer and item[REF] >> INDEX_BITS in over

            self._returns.end(self.remove(lapsed), HELD[Reason.LEASE_OVER])
            self.revoke(lapsed)

    def remove(self, gone: Callable[[Item], bool]) -> list[Item]:
        """Takes items out of all lanes."""
        rooms = [room for function in self._roster.functions.values() for room in function.rooms if room.items]
        return [item for room in rooms for item in room.remove(gone)]

    def revoke(self, gone: Callable[[Item], bool]) -> None:
        """Drops items that are not ours any more: waiting ones go, running ones are not renewed and are cancelled."""
        self.remove(gone)
        for worker, refs in self.cancel_running(gone):
            worker.revoked.update(refs)

    def cancel(self, tailer: TailerSession, refs: Collection[int]) -> None:
        """Cancels items of a session that nobody wants any more: waiting ones end at once."""

        def named(item: Item) -> bool:
            return item[SESSION] is tailer and item[REF] in refs

        self._returns.end(self.remove(named), ended(Outcome.CANCELLED, Reason.CANCELLED))
        self.cancel_running(named)

    def cancel_running(self, named: Callable[[Item], bool]) -> list[tuple[WorkerSession, list[int]]]:
        """Tells workers to cancel. Returns these workers, and which of their refs."""
        found = []
        for worker in self._workers.values():
            refs = [ref for ref, item in worker.open.items() if named(item)]
            if refs:
                worker.cancel += refs
                self._returns.speaking.add(worker)
                found.append((worker, refs))
        return found

    def take_back(self, worker: WorkerSession) -> None:
        """Puts items that were assigned to a worker and not sent back into their lanes."""
        made = list(worker.assignments)
        worker.assignments.clear()
        for each in reversed(made):
            self._intake.put_back(self._returns.unsend(worker, each))
