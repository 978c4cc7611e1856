"""The forecast of when a backlog will be empty, by the line through its sizes of the last minutes (least squares).

Minutes, so that a batch or a pause of a second changes little; no longer, so that a change shows soon.
"""

from __future__ import annotations

from collections import deque

from ...model.alert import Backlog

#: Seconds of sizes that count, seconds between two of them, and seconds that must have been watched before there is a
#: forecast.
WATCHED, STEP, LEAST = 300.0, 5.0, 20.0
#: Growth of fewer items a second than this counts as none: one item more or less in the time that is watched.
NOTHING = 1.0 / WATCHED


class Growth:
    """The sizes of one backlog. Times are monotonic seconds.

    Invariant: times rise, by STEP at least, and span WATCHED at most; so at most WATCHED / STEP + 1 sizes are kept.
    """

    def __init__(self) -> None:
        self._sizes: deque[tuple[float, int]] = deque()

    def seen(self, items: int, now: float) -> None:
        """Takes the present size. A clock that went back begins anew; of sizes closer together than STEP the first
        counts."""
        sizes = self._sizes
        if sizes and now < sizes[-1][0]:
            sizes.clear()
        if not sizes or now - sizes[-1][0] >= STEP:
            sizes.append((now, items))
        while now - sizes[0][0] > WATCHED:
            sizes.popleft()

    @property
    def least(self) -> int:
        """The smallest size; 0 before any was seen."""
        return min((items for _, items in self._sizes), default=0)

    def forecast(self, name: str, items: int) -> Backlog:
        """The forecast for a backlog of `items` now."""
        sizes = self._sizes
        watched = sizes[-1][0] - sizes[0][0] if sizes else 0.0
        if watched < LEAST:
            return Backlog(name, items, watched=watched, empty_in=-1.0 if items else 0.0)
        growth = _slope(sizes)
        if items == 0:
            return Backlog(name, items, growth, watched, 0.0)
        return Backlog(name, items, growth, watched, items / -growth if growth < -NOTHING else -1.0)


def _slope(sizes: deque[tuple[float, int]]) -> float:
    """The slope of the line of least squares, in items a second; there are at least two points."""
    count = len(sizes)
    middle = sum(at for at, _ in sizes) / count
    mean = sum(items for _, items in sizes) / count
    spread = sum((at - middle) ** 2 for at, _ in sizes)
    return sum((at - middle) * (items - mean) for at, items in sizes) / spread
