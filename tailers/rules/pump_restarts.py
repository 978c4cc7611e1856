"""Restarts of a pump that ended with an error: after which pause, if at all, and how long its reason is shown.

A restart mends an accident, and finds out when somebody has mended a cause that needs a hand: a schema that was away, a
folder that nobody may read. Both kinds are tried again, the second with longer pauses. Two errors are not tried again:
positions that must not be passed without an operator's word, and a request that is out of bounds by itself. Each
further try would read up to that place, and hand out what lies before it once more.
"""

from __future__ import annotations

from typing import NamedTuple

from ...model.backoff import MENDED, TAILER, doubled
from ...model.errors import InvalidRequest, PositionsGone, StaleFence, UserError
from .wording import wording

#: A pump that ran this long starts over with the first pause.
HEALTHY_AFTER = 60.0
#: Seconds for which a reason is shown of a pump that was begun again: by then it has met with it anew.
SHOWN = 5.0

#: Errors after which nothing is tried again until an operator says so.
STAYS = (PositionsGone, InvalidRequest)


class AfterEnd(NamedTuple):
    """The answer to a pump's end. `pause`: seconds until another pump is begun, None: none is; `news`: whether the
    reason was not said just before; `by_hand`: somebody must mend it."""

    pause: float | None
    news: bool
    by_hand: bool


class PumpRestarts:
    """Ends of one tailer's pumps, or one partition's, with `now` in monotonic seconds. Invariant: `_kind` is the error
    of the last end, in words without their numbers; empty when a pump was healthy since."""

    def __init__(self) -> None:
        self._began = 0.0
        self._pauses = 0
        self._kind = ""
        self._reason = ""
        self._waits = False

    def began(self, now: float) -> None:
        """Notes that a pump was begun."""
        self._began, self._waits = now, False

    def ended(self, error: Exception, now: float) -> AfterEnd:
        """Notes that a pump ended with this error, and answers whether another one is begun, and when."""
        if now - self._began > HEALTHY_AFTER:
            self._pauses, self._kind = 0, ""
        reason = str(error) or type(error).__name__
        kind = f"{type(error).__name__}: {wording(reason)}"
        news, self._kind = kind != self._kind, kind
        by_hand = isinstance(error, UserError)
        stays = isinstance(error, STAYS)
        self._reason = reason if by_hand and not stays else ""
        if stays:
            return AfterEnd(None, news, by_hand)
        self._waits = True
        if isinstance(error, StaleFence):
            return AfterEnd(TAILER.first, news, by_hand)
        self._pauses += 1
        return AfterEnd(doubled(*(MENDED if by_hand else TAILER), self._pauses - 1), news, by_hand)

    def why(self, now: float) -> str:
        """The reason that somebody must mend, while the pump waits for that and shortly after; empty otherwise."""
        return self._reason if self._waits or now - self._began < SHOWN else ""
