"""Hand-backs: what comes back unstarted goes out again at once, but time and again only after a pause that doubles.

Once is nothing: its worker drains, or its lease was over on arrival. Again and again is something of which neither
credit nor a gate knows (a clock that is wrong, a worker that cannot start it), and without a pause one item goes round
some hundred times a second. It costs no attempt, whatever the number: nothing is charged here, and nothing ends.

    in a row   1    2        3        4        …   8 and more
    pause      0    100 ms   200 ms   400 ms   …   5 s: what was mended is seen within a heartbeat
"""

from __future__ import annotations

from collections.abc import Collection, Hashable
from typing import TypeVar

from msgspec.structs import replace

from ...model.backoff import HAND_BACK, doubled
from ...model.outcome import Outcome
from ...model.workload import Ended, Kind
from .credit import Credit

#: Items remembered; who came back first goes first.
REMEMBERED = 100_000

K = TypeVar("K", bound=Hashable)


def pause_after(times: int, out_for: float) -> float:
    """Seconds until what came back so often in a row goes out again; it was out for `out_for` of its pause."""
    if times < 2:
        return 0.0
    return max(0.0, doubled(*HAND_BACK, times - 2) - max(0.0, out_for))


class HandBacks(dict[K, tuple[int, float]]):
    """Items that came back unstarted and have not ended otherwise since: how often in a row, and until when each waits.

    reason   why the last one that has to wait came back
    """

    __slots__ = ("reason",)

    def __init__(self) -> None:
        super().__init__()
        self.reason = ""

    def came(self, item: K, reason: str, out_for: float, now: float) -> tuple[int, float]:
        """An item came back at `now`, monotonic. Returns how often in a row, and the pause."""
        times = self.pop(item, (0, 0.0))[0] + 1
        pause = pause_after(times, out_for)
        if len(self) >= REMEMBERED:
            del self[next(iter(self))]
        self[item] = times, now + pause
        if pause:
            self.reason = reason
        return times, pause

    def over(self, items: Collection[K]) -> None:
        """Forgets items that ended in another way."""
        if self and not self.keys().isdisjoint(items):
            for item in items:
                self.pop(item, None)

    def waiting(self, now: float) -> int:
        """How many wait for the end of their pause."""
        return sum([until > now for _, until in self.values()])

    @property
    def why(self) -> str:
        """Why those wait, for people."""
        return f"handed back unstarted time and again, the last time because: {self.reason or 'nobody said'}"


def spaced(backs: HandBacks[K], item: K, kind: Kind, ended: Ended, credit: Credit, out_for: float, now: float) -> Ended:
    """How an item ended, with the pause before it goes out again where it was handed back time and again. What a closed
    cell explains, or that nobody runs the function any more, needs none: it goes when that is over."""
    if ended.outcome != Outcome.HELD:
        if backs:
            backs.over((item,))
        return ended
    if ended.after is not None or kind.function in credit.clogs or credit.is_closed(kind):
        return ended
    times, pause = backs.came(item, ended.reason, out_for, now)
    if not pause or not credit.granted(kind.function):
        return ended
    return replace(ended, after=pause, reason=f"{ended.reason} ({times} times in a row: waits {pause:.1f} s)")
