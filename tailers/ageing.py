"""Ageing of a stream's retries: how long the oldest that is due has waited, and the most attempts that a live one has
spent, by function and priority; what the queue's stores say of queued work.

Kept by whoever reads what is due: from the first time it reads an item until that is over, also while it waits for
another try; and by whoever reads a stream in order, whose items wait for another try where they are. Only what failed
is here.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable

from ..model.parked import Parked
from ..model.workload import Kind

#: Items that are remembered; the one that was not heard of for the longest is forgotten first.
MOST = 100_000


class RetryAgeing:
    """The retries of one tailer. Times are wall clock seconds."""

    def __init__(self) -> None:
        self._live: OrderedDict[str, tuple[str, int, float, int]] = OrderedDict()

    def seen(self, items: Iterable[Parked]) -> None:
        """Items that are due or will be: `attempt` is the number of their next attempt."""
        for item in items:
            self.waits(item.id, item.kind, item.due, item.attempt - 1)

    def waits(self, id: str, kind: Kind, due: float, attempts: int) -> None:
        """An item that failed in so many attempts, and is due then."""
        live = self._live
        if kind.function:
            live[id] = (kind.function, kind.priority, due, attempts)
            live.move_to_end(id)
            if len(live) > MOST:
                live.popitem(last=False)

    def started(self, ids: Iterable[str]) -> None:
        """Items that are out wait no longer; their attempts still count."""
        for id in ids:
            if (one := self._live.get(id)) is not None:
                self._live[id] = (one[0], one[1], float("inf"), one[3])

    def clear(self) -> None:
        """Another owner may have all of them by now."""
        self._live.clear()

    def over(self, *ids: str) -> None:
        """Items are over, or no longer this tailer's."""
        for id in ids if self._live else ():
            self._live.pop(id, None)

    def ages(self, now: float) -> list[tuple[str, int, float, int]]:
        """Of each function and priority for how many seconds the oldest due item has waited, and the most attempts."""
        found: dict[tuple[str, int], tuple[float, int]] = {}
        for function, priority, due, attempts in self._live.values():
            waited, most = found.get((function, priority), (0.0, 0))
            found[function, priority] = (max(waited, now - due), max(most, attempts))
        return [(*of, *ages) for of, ages in found.items()]
