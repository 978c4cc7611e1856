"""Refusals of submissions: whether they go on, and since when. They go on while no minute passes without another
one."""

from __future__ import annotations

#: Seconds after the last refusal in which they count as going on.
RECENT = 60.0


class Refusals:
    """Refusals because something was full. Times are wall clock seconds; a `since` of 0: there are none now."""

    def __init__(self) -> None:
        self._last = -RECENT
        self._since = 0.0
        self._why = ""

    def note(self, why: str, now: float) -> None:
        """Notes a refusal."""
        if not 0 <= now - self._last <= RECENT:
            self._since = now
        self._last, self._why = now, why

    def now(self, now: float) -> tuple[str, float]:
        """The reason of the last refusal, and since when they go on; empty and 0 when they are over."""
        return (self._why, self._since) if 0 <= now - self._last <= RECENT else ("", 0.0)
