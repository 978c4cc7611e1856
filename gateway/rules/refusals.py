"""Refusals of submissions, whether there are any now: since the first refusal after which no minute passed without
another one."""

from __future__ import annotations

#: Seconds after the last refusal in which they count as going on.
RECENT = 60.0


class Refusals:
    """The submissions refused because something was full. Times are wall clock seconds; `since` 0: nothing is."""

    def __init__(self) -> None:
        self._last = -RECENT
        self._since = 0.0
        self._why = ""

    def note(self, why: str, now: float) -> None:
        """A submission was refused."""
        if not 0 <= now - self._last <= RECENT:
            self._since = now
        self._last, self._why = now, why

    def now(self, now: float) -> tuple[str, float]:
        """Why the last one was, and since when; nothing when that is over."""
        return (self._why, self._since) if 0 <= now - self._last <= RECENT else ("", 0.0)
