"""`order: key | partition` of one stream tailer: which items must wait for which, before anything is pushed.

`rules/order.py` is the rule, one object per partition; this file applies it to batches, to the memory of waiting items,
and to items that a former owner handed out (inherited.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..model.audit import Fate
from ..model.demand import Cell
from ..model.outcome import Outcome
from ..model.tenant_key import shared_key, tenant_key
from ..model.workload import Ended
from .config import TailerConfig
from .departures.departure import ended_item
from .departures.departures import Departures
from .holding import Holding
from .items import Items
from .mapping.mapping import Mapped
from .mapping.record_values import FromHeader
from .partition import Partition
from .rules.order import PATIENCE, Order, WaitingForKey
from .rules.settlement import Family
from .surroundings import Surroundings

#: The end of an item that found its key busy, where such items are not to wait.
BUSY = Ended(Outcome.CANCELLED, "one of its key before it is not over")


class Ordering:
    """Order among the items of one tailer. The head of a line is the item of its key that may run, or runs.

    Invariants: with `order: none` no partition has lines and every method does nothing. With `order: key` an item
    without a key is in no line: it waits for nobody, and fails like one of `order: none`.
    """

    def __init__(
        self,
        config: TailerConfig,
        partitions: Mapping[str, Partition],
        holding: Holding,
        seen: Surroundings,
        departures: Departures,
    ) -> None:
        self._on = config.order != "none"
        self._by_key = config.order == "key"
        self._ranked = self._by_key and config.ranked
        self._most = config.looks_ahead or config.window.items >> 1
        self._partitions = partitions
        self._holding = holding
        self._seen = seen
        self._overlap = config.overlap
        self._key_rule = shared_key if config.shared_keys else tenant_key
        self._departures = departures

    @property
    def patience(self) -> float | None:
        """Seconds after which reading is worth another look although nothing happened; None: never."""
        return PATIENCE if self._on else None

    @property
    def may_read(self) -> bool:
        """Whether to read on: not while half a window of items waits behind heads that end any moment. Items behind a
        stuck head do not count, so that they never keep other keys from being read."""
        if not self._on:
            return True
        now, moving = self._seen.monotonic, 0
        for part in self._partitions.values():
            if part.order is not None:
                part.order.note_slow(now)
                moving += part.order.moving
        return moving < max(1, self._most)

    def ready(self, items: Items) -> Items:
        """The items that wait for no other; the others are kept in their lines."""
        return items.chosen(self._heads(items)) if self._on else items

    def _heads(self, items: Items) -> list[int]:
        """The indexes of items that wait for no other."""
        part, mapped = items.partition, items.mapped
        order, positions, kinds = self._order(part), items.batch.positions, mapped.kinds
        going: list[int] = []
        may_skip = self._overlap != "queue"
        for index, position in enumerate(positions):
            key = self._key(mapped, index)
            if may_skip and key is not None and self._skips(items, index) and order.is_busy(key, position):
                item = ended_item(items, index, self._seen.wall, 0, BUSY)
                self._departures.skip([item], Fate.FILTERED)
            elif key is None or order.enter(key, position, kinds[index], mapped.expires_at(index)):
                going.append(index)
            else:
                self._holding.keep(items, index)
        if self._ranked:
            self._lift(items, going)
        return going

    def _lift(self, items: Items, going: list[int]) -> None:
        """Gives heads, of a batch and held ones, the priority of their keys. Items that are out stay as they were
        handed out."""
        part, mapped = items.partition, items.mapped
        order = self._order(part)
        for index in going:
            own = mapped.kinds[index]
            lifted = order.lifted(items.position(index), own)
            if lifted != own:
                mapped.own[index], mapped.kinds[index] = own, lifted
                mapped.cells[index] = Cell(lifted.function, lifted.priority)
        if part.lift():
            self._holding.look()

    def _skips(self, items: Items, index: int) -> bool:
        """Whether an item is passed instead of waiting for others of its key. An item that ran before does wait."""
        overlap: FromHeader | str = self._overlap
        if isinstance(overlap, FromHeader):
            overlap = dict(items.batch.headers[index]).get(overlap.header, overlap.default)
        return overlap == "skip" and not items.partition.is_troubled((items.position(index),))

    def _key(self, mapped: Mapped, index: int) -> str | None:
        """The key of the line that an item belongs to; None: it is in no order."""
        if not self._by_key:
            return ""
        extra = mapped.extras.get(index)
        return self._key_rule(mapped.kinds[index].tenant, extra.key) if extra is not None and extra.key else None

    def handed_out(self, items: Items) -> None:
        """Notes items that were pushed."""
        if (order := items.partition.order) is not None:
            order.handed_out(items.batch.positions, self._seen.monotonic)

    def family(self, part: Partition, position: int) -> Family:
        """The way in which a failed item settles: in order, or redriven, it is held and tried again where it is, else
        it is parked."""
        in_order = part.order is not None and part.order.is_head(position)
        return Family.ORDERED if in_order or position in part.redriven else Family.STREAM

    # Items that a former owner handed out, and that still run or may run: see inherited.py.

    def pieces(self, items: Items) -> Iterable[Items]:
        """Splits items among which there may be adopted ones, so that each meets the others in its turn."""
        return [items.one(index) for index in range(len(items))] if self._on else [items]

    def shut(self, part: Partition, *, shut: bool) -> None:
        """Shuts or opens a partition: while some adopted items of it have not been read yet, nothing in order is handed
        out."""
        if not self._on or self._order(part).shut == shut:
            return
        self._order(part).shut = shut
        if not shut:
            self._free(part, self._order(part).open())

    def runs(self, item: Items) -> bool:
        """Takes an adopted item. True: nothing of its key comes before it. False: it waits in its line, to run again
        after the items before it; nothing of its key is handed out until it `stopped`."""
        key = self._key(item.mapped, 0) if self._on else None
        if key is None:
            return True
        if not self._order(item.partition).adopt(key, item.position(0), item.mapped.kinds[0]):
            self._holding.keep(item, 0)
            return False
        self.handed_out(item)
        return True

    def stopped(self, part: Partition, position: int, not_before: float) -> None:
        """Notes that an adopted item that waits in its line does not run any more, or not after `not_before`."""
        head = self._order(part).stopped(position)
        self._free(part, [] if head is None else [head], not_before)

    def _free(self, part: Partition, heads: Iterable[WaitingForKey], not_before: float = 0.0) -> None:
        for head in heads:
            part.hold(head.kind, head.position, not_before, head.expires_at)
            self._holding.look()

    def _order(self, part: Partition) -> Order:
        if part.order is None:
            part.order = Order(ranked=self._ranked)
        return part.order
