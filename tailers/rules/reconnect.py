"""Reconnection of a source: after which pause it is tried again, for how long its reason is shown, and which reasons
are news for the log.

A connection is not well because it came about: a record that cannot be decompressed, or a right that is missing, breaks
each new one at once. So the pauses begin anew only after one that held, and the reason stays meanwhile.
"""

from __future__ import annotations

from typing import NamedTuple

from ...model.backoff import SOURCE, Backoff, Pauses
from .wording import wording

#: Seconds for which a connection must hold until it counts as well.
STEADY = 30.0
#: Seconds for which the reason is shown of one that broke before it was steady: by then the next break has come.
SHOWN = 5.0
#: Reasons that are remembered as said.
SAID = 16


class Lost(NamedTuple):
    """The answer to a loss. `pause`: seconds until the next try; `news`: whether the reason was not said yet."""

    pause: float
    news: bool


class Reconnect:
    """The connection of one source, with `now` in monotonic seconds, tried again after `pauses`. Invariants: `_since`
    is the time at which it came about, None while there is none; `_said` has the reasons that were said since it last
    was steady."""

    def __init__(self, pauses: Pauses = SOURCE) -> None:
        self._since: float | None = None
        self._backoff = Backoff(*pauses)
        self._reason = ""
        self._flaps = False
        self._said: set[str] = set()

    def lost(self, reason: str, now: float) -> Lost:
        """Notes that the source is not connected, or not any more."""
        if self._is_steady(now):
            self._backoff.reset()
            self._flaps = False
            self._said.clear()
        elif self._since is not None:
            self._flaps = True
        self._since, self._reason = None, reason
        kind = wording(reason)
        news = kind not in self._said
        if len(self._said) >= SAID:
            self._said.clear()
        self._said.add(kind)
        return Lost(self._backoff.pause(), news)

    def reached(self, now: float) -> bool:
        """Notes that the source is connected. True when that is news: something was said of it, and it does not come
        and go."""
        fresh, self._since = self._since is None, now if self._since is None else self._since
        return fresh and bool(self._said) and not self._flaps

    def why(self, now: float) -> str:
        """The reason why the source is not connected, or broke just now; empty otherwise."""
        if self._since is None or (self._flaps and now - self._since < SHOWN):
            return self._reason
        return ""

    def _is_steady(self, now: float) -> bool:
        return self._since is not None and now - self._since >= STEADY
