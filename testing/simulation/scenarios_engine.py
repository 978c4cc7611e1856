"""Worlds made for one mistake of an executor each, as in scenarios.py."""

from __future__ import annotations

from dataclasses import replace

from .plan import Deed, Fault, Item, Plan
from .scenarios import ordered, plan_of_faults

#: Runs that take longer than the time-out of the worlds below: one ends when it is told to, one does not care.
TIMEOUT = 3.0
_SLOW = (Deed("ok", 10.0), Deed("ok", 0.1))
_STUBBORN = (Deed("ok", 20.0, stubborn=True), Deed("ok", 0.1))
_QUICK = (Deed("ok", 0.2),)


def _in_line(seconds: float) -> list[Item]:
    """Items of which several wait in a process that runs one at a time: as many as it ended quickly just before."""
    before = [ordered(n, 1.0, (Deed("ok", 0.005),)) for n in range(80)]
    return before + [ordered(n, 1.3, (Deed("ok", seconds),)) for n in range(80, 85)]


def _queued(n: int, at: float, deeds: tuple[Deed, ...], cancel: float = 0.0) -> Item:
    return Item(n, "queue", at, deeds, cancel=cancel)


#: Items that wait in a process whose worker is drained.
DRAINED = plan_of_faults(_in_line(4.0), [Fault(3.0, "drain", "worker1", seconds=15.0)], slots=1)

#: Items that end in one moment.
TOGETHER = plan_of_faults([_queued(n, 1.0, _QUICK) for n in range(6)], [])

#: One of several that run is taken back.
TAKEN_BACK = plan_of_faults([_queued(n, 1.0, (Deed("ok", 20.0),), cancel=3.0 * (n == 2)) for n in range(5)], [])

#: Items that wait for each other, each for less than the time-out.
IN_LINE = plan_of_faults(_in_line(2.0), [], slots=1, timeout=TIMEOUT)

#: Items that begin one after the other, and take too long.
ONE_BY_ONE = plan_of_faults([_queued(n, 1.0 + n, _SLOW) for n in range(4)], [], slots=16, timeout=TIMEOUT)

#: One that does not end when it is told to, beside others.
IGNORED = plan_of_faults(
    [ordered(0, 1.0, _STUBBORN), ordered(1, 2.0, _QUICK), _queued(2, 1.5, _STUBBORN)], [], slots=16, timeout=TIMEOUT
)

#: A process that stands still while the time of what runs in it is over.
STOOD_STILL = plan_of_faults(
    [ordered(0, 1.0, _STUBBORN), _queued(1, 1.0, _SLOW)],
    [Fault(2.0, "executors", "worker1", what="freeze", seconds=9.0)],
    slots=16,
    timeout=TIMEOUT,
)

#: The first two worlds with `def` functions.
THREADS_DRAINED, THREADS_TOGETHER = replace(DRAINED, threads=True), replace(TOGETHER, threads=True)

#: By the name of the bug: the worlds in which it shows.
SCENARIOS: dict[str, list[Plan]] = {
    "what was stopped while it waited starts": [DRAINED],
    "an end is told twice": [TOGETHER],
    "what was stopped ends as if it had failed": [TAKEN_BACK],
    "a stop takes all that runs beside it": [TAKEN_BACK],
    "what was taken from a thread starts": [THREADS_DRAINED],
    "the loop is woken for the first end of a thread alone": [THREADS_TOGETHER],
    "a timeout is counted from arrival": [IN_LINE],
    "a later timeout puts off an earlier one": [ONE_BY_ONE],
    "a timeout costs no attempt": [ONE_BY_ONE],
    "who ends its process by its timeout spends no attempt": [IGNORED],
    "who ignores its timeout goes on": [IGNORED],
    "a process that stood still is blamed": [STOOD_STILL],
}
