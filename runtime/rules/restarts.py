"""Restarts: how soon a pool replaces an executor process that died (the back-off of a crash loop).

A process that did a round of work is replaced at once, whatever ended it: its functions load and run, the item that
crashed it is a suspect and comes back alone, and the rest of its pool waits for the next one. So is a process that was
ended on purpose, by the timer of its lease too, since the reason lies outside of it. Only processes that die young, one
after the other, are replaced ever more slowly, as a start keeps a processor busy (Kubernetes: CrashLoopBackOff).
"""

from __future__ import annotations

from ...model.backoff import doubled

#: Seconds after which a death is of something new, even of a process that ended no run: it may have run long ones.
LONG_LIFE = 5.0


class Restarts:
    """The deaths of one pool. `in_a_row`: processes that died young since the last one that did not. `round_of_work`:
    ended runs that make a round, the slots of a process."""

    def __init__(self, round_of_work: int) -> None:
        self.in_a_row = 0
        self._round = round_of_work

    def died(self, *, meant: bool, lived: float, runs: int) -> float:
        """Counts a process that died after `lived` seconds and so many ended runs, `meant` to or not. Returns the
        seconds before another one starts: 0; of those that die young in a row 0, 0.1, 0.2 … 5."""
        young = not (meant or lived >= LONG_LIFE or runs >= self._round)
        self.in_a_row = self.in_a_row + 1 if young else 0
        return doubled(0.1, 5.0, self.in_a_row - 2) if self.in_a_row > 1 else 0.0

    def not_started(self) -> float:
        """Counts a process that could not be started, for want of memory or descriptors. Returns the seconds before the
        next try: 0.1, 0.2 … 5."""
        self.in_a_row += 1
        return doubled(0.1, 5.0, self.in_a_row - 1)
