"""Unexplained runs: an item ran again, though its run did not ask for that, and no fault touched a process, a wire or a
store that had it. A connection that breaks, and a wire that is cut for less than a heartbeat, explain nothing (L3),
unless the next one may lead to another scheduler; nor do wires that are cut, and hosts that stand still, for less than
leases leave room for (L2)."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise, product
from typing import NamedTuple

from ...model.lease import LeaseSizes
from ...runtime.executor_main import CULPRIT
from ...runtime.rules.silence import longest
from .audit import COPIES
from .journal import Execution, Journal
from .plan import Fault, Plan

#: How runs end that are followed by another one without a fault: what the function said, or did to its process.
OVERDUE = f"killed ({CULPRIT})"
ASKED = ("retry", "throttled", "crashed", "killed (-11)", OVERDUE)
#: Seconds that a break may last at most to restart nothing (L3): a heartbeat, less what it takes to connect again.
HEALS = 4.0
#: Seconds for which a host may stand still or not be heard, in all that touched a run together (L2): of the three
#: heartbeats that may fail, one is over in part when that begins, and one is for the answers to get through at its end.
ROOM = 9.0
#: Faults that are over after their seconds, as if they had not been, if those are few.
BREAKS = ("cut", "both", "freeze")
#: Seconds after a fault in which what it did to somebody may show: a connection that is given up, and a lease.
LINGERS = 45.0

#: Seconds for which a function may keep the interpreter lock: its leases are renewed in time all the same.
LOCKED = longest(LeaseSizes())

Path = Callable[[str, int], tuple[set[str], set[str]]]


class Touched(NamedTuple):
    """The parts that a hand-out depends on. `sessions` are those of `wires` whose connection, once it broke, may find
    another process at the same address, which knows nothing of the hand-out."""

    hosts: set[str]
    wires: set[frozenset[str]]
    sessions: set[frozenset[str]]


class UnexplainedRuns:
    """Check that each further run of an item is explained. `path` says who had a hand-out; `stores` are the hosts on
    which everything rests."""

    def __init__(self, plan: Plan, journal: Journal, path: Path, stores: set[str]) -> None:
        self._plan = plan
        self._journal = journal
        self._path = path
        self._stores = stores
        self._rivals = plan.apart and plan.tailers > 1  # who takes over what its owner is not heard to have
        failing = sum(item.deed(0).kind in ("raise", "crash", "fatal") for item in plan.items)
        self._frozen = failing >= COPIES  # the function may be, and what fails then spends no attempt

    def at_rest(self) -> None:
        """Checks each run that was followed by another one: it asked for that, and spent an attempt if it failed, or a
        fault touched a part that had it."""
        for story in self._journal.stories.values():
            for run, again in pairwise(story.executions):
                anew = again.attempt == 1 and run.id in self._journal.in_line
                heard = anew or (self._asked(run) and (not run.spent or self._frozen or again.attempt > run.attempt))
                if not heard and not self._explained(run, again):
                    self._journal.wrong(
                        f"unexplained: {run.id} ran in {run.where} from {run.start:.3f} ({run.how}) and again from"
                        f" {again.start:.3f}, and no fault touched a part that had it"
                    )

    def _asked(self, run: Execution) -> bool:
        """Whether a run ended by its function's own word, by what it did to its process, or since one there ignored its
        time-out, or kept the interpreter lock beyond what may be."""
        how = run.died or run.how
        if any(each.locked > LOCKED for each in self._in_process(run)):
            return True
        return how in ASKED and (how != OVERDUE or any(each.ended_all for each in self._in_process(run)))

    def _in_process(self, run: Execution) -> list[Execution]:
        runs = [each for story in self._journal.stories.values() for each in story.executions]
        return [each for each in runs if each.where == run.where]

    def _explained(self, run: Execution, again: Execution) -> bool:
        touched = self._touched(run)
        faults = [
            fault
            for fault in self._plan.faults
            if fault.at < again.start and fault.at + fault.seconds + LINGERS > run.start and _touches(fault, touched)
        ]
        if any(fault.kind not in BREAKS for fault in faults):
            return True
        long = any(fault.seconds > HEALS for fault in faults)
        return long and (self._rivals or sum(fault.seconds for fault in faults) > ROOM)

    def _with(self, run: Execution) -> set[tuple[str, int]]:
        """The run's hand-out, and those that died with it: the lease of one ends the process of all, also of one that
        waits there and never ran."""
        if not (run.died or run.how).startswith("killed"):
            return {(run.id, run.fence)}
        over = {(each.id, each.fence) for each in self._in_process(run) if (each.end or math.inf) < run.start}
        end = run.end or math.inf
        return {each for each, at in self._journal.items_of[run.where].items() if at <= end} - over

    def _touched(self, run: Execution) -> Touched:
        worker, schedulers, tailers = run.where.partition("/")[0], set[str](), set[str]()
        for id, fence in self._with(run):
            had, held = self._path(id, fence)
            schedulers |= had
            tailers |= held
        wires = {frozenset(each) for each in product({worker}, schedulers)}
        sessions = {frozenset(each) for each in product(schedulers, tailers)}
        wires |= sessions
        wires |= {frozenset(each) for each in product(tailers, self._stores)}
        return Touched({worker} | schedulers | tailers | self._stores, wires, sessions if self._plan.front else set())


def _touches(fault: Fault, touched: Touched) -> bool:
    match fault.kind:
        case "zombie":
            return frozenset((fault.host, fault.other)) in touched.wires
        case "cut" | "both":
            return fault.seconds > HEALS and frozenset((fault.host, fault.other)) in touched.wires
        case "reset":
            return frozenset((fault.host, fault.other)) in touched.sessions
        case "weather" | "steer":
            return True  # of every wire
        case (
            "kill"
            | "freeze"
            | "drain"
            | "point"
            | "executors"
            | "restore"
            | "jump"
            | "busy"
            | "full"
            | "writer"
            | "power"
        ):
            return fault.host in touched.hosts
    return False
