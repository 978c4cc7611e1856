"""Ages of a stream's retries, by function and priority: how long the oldest due retry has waited, and the most attempts
that a live item has spent. A queue's store tells the same of queued work.

The tailer that reads due streams keeps them from the first time it reads an item until the item is over, also while the
item waits for another try. A tailer that reads a stream in order keeps them, too: its failed items wait where they are.
Only failed items are here.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable

from ..model.parked import Parked
from ..model.workload import Kind

#: The most items that are remembered; the one that was not heard of for the longest time is forgotten first.
MOST = 100_000


class RetryAgeing:
    """The retries of one tailer. Times are wall clock seconds."""

    def __init__(self) -> None:
        self._live: OrderedDict[str, tuple[str, int, float, int]] = OrderedDict()

    def seen(self, items: Iterable[Parked]) -> None:
        """Notes items that are due or will be; `attempt` is the number of their next attempt."""
        for item in items:
            self.waits(item.id, item.kind, item.due, item.attempt - 1)

    def waits(self, id: str, kind: Kind, due: float, attempts: int) -> None:
        """Notes an item that failed in so many attempts, and is due at `due`."""
        live = self._live
        if kind.function:
            live[id] = (kind.function, kind.priority, due, attempts)
            live.move_to_end(id)
            if len(live) > MOST:
                live.popitem(last=False)

    def started(self, ids: Iterable[str]) -> None:
        """Notes that items are out: they wait no longer, and their attempts still count."""
        for id in ids:
            if (one := self._live.get(id)) is not None:
                self._live[id] = (one[0], one[1], float("inf"), one[3])

    def clear(self) -> None:
        """Forgets all items: another owner may have them by now."""
        self._live.clear()

    def over(self, *ids: str) -> None:
        """Forgets items that are over, or are no longer this tailer's."""
        for id in ids if self._live else ():
            self._live.pop(id, None)

    def ages(self, now: float) -> list[tuple[str, int, float, int]]:
        """Each function and priority, with the seconds that its oldest due item has waited, and the most attempts."""
        found: dict[tuple[str, int], tuple[float, int]] = {}
        for function, priority, due, attempts in self._live.values():
            waited, most = found.get((function, priority), (0.0, 0))
            found[function, priority] = (max(waited, now - due), max(most, attempts))
        return [(*of, *ages) for of, ages in found.items()]
