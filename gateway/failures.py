"""Failures that schedulers and workers in other processes report of themselves, for operators."""

from __future__ import annotations

from ..foundation.clock import Clock
from ..model.errors import InvalidRequest
from ..model.reopening import WINDOW, Trouble

#: Most parts that are remembered, those that reported last.
MOST_PARTS = 100
#: Seconds for which something that ails a part is shown, unless the part says it again, each minute: it may be gone.
AILING = 150.0
#: Characters that are kept of a part's name, and of the reason.
LONGEST_NAME, LONGEST_TEXT = 200, 500


class FailureDesk:
    """Reported failures, one per part. Nothing is durable; a part is remembered for as long as a failure is shown."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._told: dict[str, tuple[float, Trouble]] = {}  # since when (monotonic), the oldest first

    def tell(self, part: str, why: str, times: int) -> None:
        """Takes the report that a part was opened again after its `times`-th failure. None: something ails it now, and
        it tries again by itself; without a reason it is well."""
        part = part[:LONGEST_NAME]
        if not part:
            raise InvalidRequest("the report of a failure has no part: expected its name")
        what = why[:LONGEST_TEXT]
        if times > 0:
            what = f"it failed {times} times since its process began, it is open again; {what}"
        _, before = self._told.pop(part, (0.0, None))
        if not what:
            return
        since = before.since if before is not None and before.what == what else self._clock.wall()
        self._told[part] = (self._clock.monotonic(), Trouble(part, since, what, max(0, times)))
        while len(self._told) > MOST_PARTS:
            del self._told[next(iter(self._told))]

    def troubles(self) -> list[Trouble]:
        """The failures of the last WINDOW seconds, and what was said to ail in the last AILING ones, one per part."""
        now = self._clock.monotonic()
        self._told = {
            part: (told, each)
            for part, (told, each) in self._told.items()
            if now - told < (WINDOW if each.times else AILING)
        }
        return [trouble for _, trouble in self._told.values()]
