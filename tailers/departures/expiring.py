"""Items of a stream whose deadline passed before they started: they are over, as the tailer's file says how.

The scheduler and the worker look too, each before an item gets on; this looks at items that the tailer has itself.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...model.audit import Fate
from ...model.outcome import EXPIRED_WHY, Outcome
from ...model.workload import Ended
from ..config import TailerConfig
from ..counts import TailerCounts
from ..items import Items
from ..partition import Partition
from ..resources import Setup
from ..rules.expiry import is_over
from ..rules.settlement import Action, Settlement
from ..surroundings import Surroundings
from .departure import EndedItem, ended_item
from .departures import Departures

#: The end of an item that its tailer did not hand out any more.
LATE = Ended(Outcome.EXPIRED, EXPIRED_WHY)


class Expiring:
    """Expired items of one tailer. Copies of due streams are not looked at here: only their rows say whether they may
    still run, so they end as expired at the scheduler.

    looks whether held items have deadlines at all
    """

    def __init__(self, setup: Setup, departures: Departures, counts: TailerCounts, seen: Surroundings) -> None:
        config = setup.config
        self.looks = config.expires is not None
        self._config = config
        self._origin = setup.origin
        self._seen = seen
        self._departures = departures
        self._counts = counts

    def in_time(self, items: Items) -> Items:
        """The items that may still start; ends the others."""
        now = self._seen.wall
        late = [index for index, extra in sorted(items.mapped.extras.items()) if is_over(extra.expires_at, now)]
        if not late:
            return items
        for index in late:
            item = ended_item(items, index, now, 0, LATE)
            attempts, crashes, throttles, _ = item.history(now)
            self.end(item, Settlement(Action.DONE, 0.0, attempts - 1, crashes, throttles, LATE.reason))
        return items.chosen(sorted(set(range(len(items))).difference(late)))

    def unread(self, part: Partition, positions: Sequence[int]) -> None:
        """Settles held positions that expired while their payload is not in memory; nobody needs it."""
        part.settle(sorted(positions), Fate.EXPIRED)
        self._counts.settled += len(positions)

    def end(self, item: EndedItem, settlement: Settlement) -> None:
        """Ends an item that expired, wherever that was found."""
        former = item.former
        config: TailerConfig | None = self._config if former is None else self._origin(former.tailer)
        if config is not None and config.on_expiry == "dead_letter":
            self._departures.bury(item, settlement, self._seen.wall, Fate.EXPIRED)
        else:
            self._departures.end(item, Fate.EXPIRED)
