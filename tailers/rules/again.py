"""A pump that ended with an error: whether another one is begun, after which pause, how long its reason is shown.

Trying again mends an accident, and finds out when somebody mended what needs a hand: a schema that was away, a folder
that nobody may read. So both are tried again, the latter with longer pauses. Only what must not be passed without
somebody's word stays as it is, and what is out of bounds by itself: each further try would read up to it, and hand out
what lies before it once more.
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

#: What stays as it is until somebody says that it is to be tried again.
STAYS = (PositionsGone, InvalidRequest)


class AfterEnd(NamedTuple):
    """The answer to an end. `pause`: seconds until another pump is begun, None: none is; `news`: whether the reason was
    not said just before; `by_hand`: somebody must mend it."""

    pause: float | None
    news: bool
    by_hand: bool


class Again:
    """Ends of one tailer's pumps, or one partition's, with `now` in monotonic seconds. Invariant: `_kind` is what the
    last one ended with, in words without their numbers; empty when it was well since."""

    def __init__(self) -> None:
        self._began = 0.0
        self._pauses = 0
        self._kind = ""
        self._reason = ""
        self._waits = False

    def began(self, now: float) -> None:
        """A pump was begun."""
        self._began, self._waits = now, False

    def ended(self, error: Exception, now: float) -> AfterEnd:
        """Notes how it ended."""
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
        """What somebody must mend, while it waits for that; empty otherwise."""
        return self._reason if self._waits or now - self._began < SHOWN else ""
