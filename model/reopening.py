"""A part of which something failed beyond its own handling is closed and opened again: after which pause, and for how
long it is shown.

The first failure is answered nearly at once; each further one within a window doubles the pause, up to a cap. It never
gives up: what the world did to a part (a disk, a server, a neighbour) the world may undo.
"""

from __future__ import annotations

from dataclasses import dataclass

from .backoff import PART, doubled

#: Failures count together, and are shown, for so long (seconds).
WINDOW = 600.0
#: Seconds for which another part is called in vain before that is shown: parts start, and start again, in any order.
IN_VAIN = 4.0
#: Words with which a trouble begins when a store's data is older than a process saw it: what was stored since is lost.
MISSING = "accepted work may be missing"
#: More of them are not told apart.
MOST = 32


@dataclass(frozen=True, slots=True)
class Failures:
    """The moments at which a part failed in the last window, by the monotonic clock, the oldest first: at most MOST."""

    times: tuple[float, ...] = ()

    def with_failure_at(self, now: float) -> Failures:
        """Adds a failure at `now`, and leaves out those that are too old to count."""
        return Failures((*self.recent(now).times, now)[-MOST:])

    def recent(self, now: float) -> Failures:
        """The failures of the last window, which still count."""
        return Failures(tuple(each for each in self.times if now - each < WINDOW))

    def pause(self, now: float) -> float:
        """Seconds from the last failure until the part is opened again."""
        count = len(self.recent(now).times)
        return doubled(*PART, max(0, count - 1))


@dataclass(frozen=True, slots=True)
class Trouble:
    """A failure in a part, for operators: which part, `since` when (wall clock seconds), what is so. `times`: how often
    the part was closed for it in the last window; 0: its duty is tried again by itself. `todo`: what to do about it,
    where that is neither of these."""

    part: str
    since: float
    what: str
    times: int = 0
    todo: str = ""
