"""Credit (flow-control windows) that each session is told: limits by cell, a total, closed cells, and the known
functions. The numbers are the roster's, by rules/credit.py.

It is worked out where something changed, never on the way of an item; sessions hear only of what is new.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..model.demand import Cell, Closed
from ..model.function_spec import FunctionSpec
from .closings import Closings
from .crowding import Crowding
from .intake import Intake
from .outages import Outages
from .returns import Returns
from .roster import Roster
from .rules.gate import DROP, PAUSE, sentence
from .sessions import TailerSession, WorkerSession


class SessionCredits:
    """The credit of all sessions (flow-control windows). Invariant: every session in `tailers` was told, or is about to
    be told, the same cells and the same `total`.

    bound   items that one session may have pushed at most
    grace   seconds for which a function keeps its cells after its last worker went
    """

    def __init__(
        self,
        roster: Roster,
        workers: Mapping[str, WorkerSession],
        tailers: Mapping[str, TailerSession],
        intake: Intake,
        outages: Outages,
        closings: Closings,
        crowding: Crowding,
        returns: Returns,
        bound: int,
        grace: float,
    ) -> None:
        self.total = 0  # items that one session may have pushed, of all cells together
        self.cells: dict[Cell, int] = {}
        self._roster = roster
        self._workers = workers
        self._tailers = tailers
        self._intake = intake
        self._outages = outages
        self._closings = closings
        self._crowding = crowding
        self._speaking = returns.speaking
        self._bound = bound
        self._grace = grace

    def welcome(self, tailer: TailerSession) -> None:
        """Tells a new session all of its credit."""
        tailer.functions = dict(self._roster.specs)
        tailer.closed = self._closed(tailer)
        tailer.cells = dict(self.cells)
        tailer.total = self.total

    def work_out(self, now: float, *, admits: bool) -> None:
        """Works out every limit anew; sessions hear what changed. A scheduler that admits nothing gives none."""
        cells: dict[Cell, int] = {}
        total = 0
        if admits:
            sessions = sum([not tailer.patient for tailer in self._tailers.values()])
            dropped = self._intake.gates.dropped
            cells, total = self._roster.credit(self._workers.values(), sessions, self._bound, self._grace, now, dropped)
        before = self.cells
        changed = {cell: limit for cell, limit in cells.items() if before.get(cell) != limit}
        changed.update({cell: 0 for cell in before if cell not in cells})
        if changed or total != self.total:
            self.cells, self.total = cells, total
            for tailer in self._tailers.values():
                tailer.cells.update(changed)
                tailer.total = total
                self._speaking.add(tailer)

    def close_cells(self) -> None:
        """Tells every session which cells are closed now, after a change of gates, of limits that keep work waiting, or
        of clogged functions."""
        for tailer in self._tailers.values():
            tailer.closed = self._closed(tailer)
            self._speaking.add(tailer)

    def announce(self, specs: Iterable[FunctionSpec], now: float) -> None:
        """Tells sessions of functions that are registered or run, as far as these are new or changed."""
        fresh = self._roster.announce(specs, now)
        for tailer in self._tailers.values() if fresh else ():
            tailer.functions.update(fresh)
            self._speaking.add(tailer)

    def _closed(self, tailer: TailerSession) -> frozenset[Closed]:
        """Cells that a session need not push: those that gates or limits close, and clogged functions (open circuit
        breakers), unless the session goes through outages, or all of the function is dropped, which needs no probes."""
        gates, clogged = self._intake.gates, self._outages.closed
        shut = gates.closed
        if (gate := gates.sources.get(tailer.name)) is not None:
            if gate.action == PAUSE:  # nothing of another gate is more specific than a source's
                shut = frozenset(cell for cell in shut if not cell.drop)
            shut = shut.union({Closed("", reason=sentence(gate), drop=gate.action == DROP)})
        if self._closings.closed:
            shut = shut.union(self._closings.closed.values())
        if crowded := self._crowding.closed(tailer):
            shut = shut.union(crowded)
        if tailer.through_outages or not clogged:
            return shut
        return shut.union([cell for name, cell in clogged.items() if name not in gates.dropped])
