"""Outages: lanes, sessions and probes of a function follow the decisions of the clog rule (a circuit breaker,
rules/clog.py).

While a function is frozen its lanes hold only items that may run all the same: a probe, items of waiting callers, and
items of sessions that said they run through outages. Everything else waits in the function's `asking` room (one item of
each session, since that is its allowance), or was handed back.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..model.demand import Closed
from .evidence import Evidence
from .intake import Intake
from .recall import Recall
from .returns import HELD, Returns
from .roster import Roster
from .rules.clog import Clog, ClogLimits, ClogState
from .rules.explain import Reason
from .rules.flow import KIND, REF, SESSION
from .sessions import WorkerSession

#: Items of one session that may wait to be the probe.
ALLOWANCE = 1
#: Probes remembered, of all functions; the oldest, whose end nobody reports, go first.
PROBES = 1000


class Outages:
    """The functions that are clogged (whose circuit breaker is open). Invariant: `closed` names exactly the functions
    that are not healthy; only they have items in `asking`."""

    def __init__(
        self,
        limits: ClogLimits,
        roster: Roster,
        workers: Mapping[str, WorkerSession],
        returns: Returns,
        intake: Intake,
        recall: Recall,
    ) -> None:
        self.clogs: dict[str, Clog] = {}
        self.closed: dict[str, Closed] = {}
        self.thawed: list[str] = []  # since somebody looked
        self._limits = limits
        self._roster = roster
        self._workers = workers
        self._returns = returns
        self._intake = intake
        self._recall = recall
        self._evidence: Evidence = returns.evidence

    def review(self, now: float, wall: float) -> bool:
        """Looks at ends since the last time. Returns whether a function froze or thawed."""
        counts, probed = self._evidence.take(self.closed)
        if not (counts or probed):
            return False
        whys: dict[str, str] = {}
        for name, each in counts.items():
            clog = self.clogs.get(name)
            if clog is None:
                clog = self.clogs[name] = Clog(self._limits, now)
                self._evidence.watched.add(name)
            else:
                clog.note(each.earlier, (), now)
            clog.note(each.passed, each.failed, now)
            whys[name] = each.why
        for probe in probed:
            if probe.function in self.clogs:
                self.clogs[probe.function].probed(probe.id, probe.well, now)
        changed = False
        for name in {*counts, *(probe.function for probe in probed)} & self.clogs.keys():
            frozen = self.clogs[name].state is not ClogState.HEALTHY
            if frozen and name not in self.closed:
                self._freeze(name, whys.get(name, ""), now, wall)
                changed = True
            elif not frozen and name in self.closed:
                self._thaw(name, now)
                changed = True
        return changed

    def turn(self, now: float) -> None:
        """Lets probes start whose time has come."""
        for name in self.closed:
            function, clog = self._roster.functions[name], self.clogs[name]
            if function.asking.items and clog.may_probe(now):
                clog.probe(now)
                (item,) = function.asking.take(1)
                probes = self._evidence.probes
                probes[item[SESSION], item[REF]] = name
                if len(probes) > PROBES:
                    del probes[next(iter(probes))]
                self._intake.put(item, now)

    def next_at(self) -> float | None:
        """Time at which `turn` can let something start."""
        functions = self._roster.functions
        return min(
            [self.clogs[name].next_probe() for name in self.closed if functions[name].asking.items], default=None
        )

    def tick(self, now: float) -> None:
        """Forgets circuit breakers that were well for long, and notes for the rest how many attempts ended well
        meanwhile."""
        for name in [name for name, clog in self.clogs.items() if clog.forgettable(now)]:
            del self.clogs[name]
            self._evidence.watched.discard(name)
        for name, passed in self._evidence.take_earlier().items():
            if name in self.clogs:
                self.clogs[name].note(passed, (), now)

    def _freeze(self, name: str, why: str, now: float, wall: float) -> None:
        """Freezes a function: its pushed items that have not started go back, which costs them nothing."""
        function, clog = self._roster.functions[name], self.clogs[name]
        share = round(100 * (1 - clog.passing))
        reason = f"{name} is clogged (its circuit breaker is open): of its last first attempts {share} % failed"
        self.closed[name] = Closed(name, reason=f"{reason} ({why})" if why else reason, probes=ALLOWANCE, since=wall)
        function.frozen = True
        self._evidence.frozen[name] = now
        self._intake.forget_routes()
        for worker in self._workers.values():
            if any(item[KIND].function == name for made in worker.assignments for item in made.items):
                self._recall.take_back(worker)
        for room in function.rooms:
            self._returns.end(room.remove(lambda item: not item[SESSION].through_outages), HELD[Reason.OUTAGE])

    def _thaw(self, name: str, now: float) -> None:
        del self.closed[name], self._evidence.frozen[name]
        self.thawed.append(name)
        function = self._roster.functions[name]
        function.frozen = False
        self._intake.forget_routes()
        self._evidence.probes = {key: of for key, of in self._evidence.probes.items() if of != name}
        for item in function.asking.take(len(function.asking)):
            self._intake.put(item, now)
