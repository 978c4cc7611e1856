"""Hand-backs: an item that comes back unstarted goes out again at once, but time and again only after longer pauses.

One hand-back is normal: the worker drains, or the lease was over on arrival. Several in a row have a cause of which
neither credit nor a gate knows (a clock that is wrong, a worker that cannot start the item), and without a pause one
item goes round some hundred times a second. A hand-back costs no attempt, however many there are: nothing is charged
here, and nothing ends.

    in a row   1    2        3        4        …   8 and more
    pause      0    100 ms   200 ms   400 ms   …   5 s: a cause that was mended is seen within a heartbeat
"""

from __future__ import annotations

from collections.abc import Collection, Hashable
from typing import TypeVar

from msgspec.structs import replace

from ...model.backoff import HAND_BACK, doubled
from ...model.outcome import Outcome
from ...model.workload import Ended, Kind
from .credit import Credit

#: Items remembered; beyond that, the one that came back first is forgotten.
REMEMBERED = 100_000

K = TypeVar("K", bound=Hashable)


def pause_after(times: int, out_for: float) -> float:
    """Seconds until an item that came back `times` times in a row goes out again; it was out for `out_for` of its
    pause."""
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
        """Notes that an item came back at `now`, monotonic. Returns how often in a row it did, and its pause."""
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
        """Number of items that wait for the end of their pause."""
        return sum([until > now for _, until in self.values()])

    @property
    def why(self) -> str:
        """The reason why items wait, for people."""
        return f"handed back unstarted time and again; the last reason: {self.reason or 'none given'}"


def spaced(backs: HandBacks[K], item: K, kind: Kind, ended: Ended, credit: Credit, out_for: float, now: float) -> Ended:
    """The end of an item, with the pause before it goes out again where it was handed back time and again. No pause is
    needed where a closed cell explains the end, or the fact that no worker runs the function any more: the item goes
    when that is over."""
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
