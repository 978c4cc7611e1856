"""Restarts: how soon a pool replaces an executor process that died (the back-off of a crash loop).

A process that did a round of work is replaced at once, whatever ended it: its functions load and run, what crashed it
is a suspect and comes back alone, and the rest of its pool waits for the next one. So is a process that was ended on
purpose, by the timer of its lease too, whose reason lies outside of it. Only processes that die young, one after the
other, are replaced ever more slowly, as a start keeps a processor busy (Kubernetes: CrashLoopBackOff).
"""

from __future__ import annotations

from ...model.backoff import doubled

#: Seconds after which a death is of something new, even of a process that ended no run: it may have run long ones.
LONG_LIFE = 5.0


class Restarts:
    """The deaths of one pool. `in_a_row`: of processes that died young, since one that did not. `round_of_work`: ended
    runs that are one, the slots of a process."""

    def __init__(self, round_of_work: int) -> None:
        self.in_a_row = 0
        self._round = round_of_work

    def died(self, *, meant: bool, lived: float, runs: int) -> float:
        """A process died after `lived` seconds and so many ended runs, `meant` to or not. Returns the seconds before
        another one starts: 0, of those that die young 0, 0.1, 0.2 … 5."""
        young = not (meant or lived >= LONG_LIFE or runs >= self._round)
        self.in_a_row = self.in_a_row + 1 if young else 0
        return doubled(0.1, 5.0, self.in_a_row - 2) if self.in_a_row > 1 else 0.0

    def not_started(self) -> float:
        """A process could not be started, for want of memory or descriptors. Returns the seconds before the next try:
        0.1, 0.2 … 5."""
        self.in_a_row += 1
        return doubled(0.1, 5.0, self.in_a_row - 1)
