"""Failures that parts which run apart, schedulers and workers, report of themselves: for operators."""

from __future__ import annotations

from ..foundation.clock import Clock
from ..model.errors import InvalidRequest
from ..model.reopening import WINDOW, Trouble

#: Parts that are remembered, the last ones that told; and how much of what they say.
MOST_PARTS = 100
LONGEST_NAME, LONGEST_TEXT = 200, 500


class FailureDesk:
    """Reported failures, one per part. Nothing is durable; a part is remembered for as long as a failure is shown."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._told: dict[str, tuple[float, Trouble]] = {}  # since when (monotonic), the oldest first

    def tell(self, part: str, why: str, times: int) -> None:
        """A part was opened again."""
        part = part[:LONGEST_NAME]
        if not part:
            raise InvalidRequest("which part failed? Its name is missing")
        times = max(1, times)
        what = f"it failed {times} times since its process began, it is open again; {why[:LONGEST_TEXT]}"
        self._told.pop(part, None)
        self._told[part] = (self._clock.monotonic(), Trouble(part, self._clock.wall(), what, times))
        while len(self._told) > MOST_PARTS:
            del self._told[next(iter(self._told))]

    def troubles(self) -> list[Trouble]:
        """Of which parts, of late."""
        now = self._clock.monotonic()
        self._told = {part: each for part, each in self._told.items() if now - each[0] < WINDOW}
        return [trouble for _, trouble in self._told.values()]
