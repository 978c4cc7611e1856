"""`order: key | partition` of one stream tailer: who must wait for whom before anything is pushed.

The rule is rules/order.py, one per partition; here it meets the batches, the memory of what waits, and what a former
owner handed out (inherited.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..sdk.clock import Clock
from ..sdk.model.audit import Fate
from ..sdk.model.demand import Cell
from ..sdk.model.outcome import Outcome
from ..sdk.model.workload import Ended
from ..sdk.source import StreamBatch
from .config import TailerConfig
from .holding import Holding
from .leaving.departing import departing
from .leaving.departures import Departures
from .mapping.aim import Aim
from .mapping.mapping import Mapped
from .mapping.record_values import FromHeader
from .partition import Partition, chosen
from .rules.order import PATIENCE, Order, WaitingForKey
from .rules.settlement import Family

#: What is said of an item that found its key busy, where such are not to wait.
BUSY = Ended(Outcome.CANCELLED, "one of its key before it is not over")


class Ordering:
    """Invariants: with `order: none` no partition has lines and every method does nothing. With `order: key` an item
    without a key is in no line: it waits for nobody, and fails like one of `order: none`."""

    def __init__(
        self,
        config: TailerConfig,
        aim: Aim,
        partitions: Mapping[str, Partition],
        holding: Holding,
        clock: Clock,
        departures: Departures,
    ) -> None:
        self._aim = aim
        self._on = config.order != "none"
        self._by_key = config.order == "key"
        self._ranked = self._by_key and config.ranked
        self._most = config.looks_ahead or config.window.items >> 1
        self._partitions = partitions
        self._holding = holding
        self._clock = clock
        self._overlap = config.overlap
        self._departures = departures

    @property
    def patience(self) -> float | None:
        """Seconds after which reading is worth another look although nothing happened; None: never."""
        return PATIENCE if self._on else None

    @property
    def may_read(self) -> bool:
        """Whether to read on: not while half a window of items waits behind heads that end any moment. What waits
        behind a stuck head does not count, so that it never keeps other keys from being read."""
        if not self._on:
            return True
        now, moving = self._clock.monotonic(), 0
        for part in self._partitions.values():
            if part.order is not None:
                part.order.grow_patient(now)
                moving += part.order.moving
        return moving < max(1, self._most)

    def ready(self, part: Partition, batch: StreamBatch) -> tuple[StreamBatch, Mapped]:
        """The items that wait for no other, mapped; the others are kept in their lines."""
        mapped = self._aim.mapping.map(batch)
        going = self._heads(part, batch, mapped) if self._on else None
        if going is None:
            return batch, mapped
        return chosen(batch, going), mapped.chosen(going)

    def _heads(self, part: Partition, batch: StreamBatch, mapped: Mapped) -> list[int] | None:
        """The indexes of items that wait for no other, None for all."""
        order, positions, kinds = self._order(part), batch.positions, mapped.kinds
        going: list[int] = []
        may_skip = self._overlap != "queue"
        for index, position in enumerate(positions):
            key = self._key(mapped, index)
            if may_skip and key is not None and self._skips(part, batch, index) and order.is_busy(key, position):
                item = departing(part, batch, mapped, index, self._clock.wall(), 0, BUSY)
                self._departures.skip([item], Fate.FILTERED)
            elif key is None or order.enter(key, position, kinds[index], mapped.expires_at(index)):
                going.append(index)
            else:
                self._holding.keep(part, batch, index)
        if self._ranked:
            self._lift(part, batch, mapped, going)
        return None if len(going) == len(positions) else going

    def _lift(self, part: Partition, batch: StreamBatch, mapped: Mapped, going: list[int]) -> None:
        """Heads run as early as their keys are urgent: those of a batch and those that are held. What is out stays as
        it was handed out."""
        order = self._order(part)
        for index in going:
            own = mapped.kinds[index]
            lifted = order.lifted(batch.positions[index], own)
            if lifted != own:
                mapped.own[index], mapped.kinds[index] = own, lifted
                mapped.cells[index] = Cell(lifted.function, lifted.priority)
        if part.lift():
            self._holding.look()

    def _skips(self, part: Partition, batch: StreamBatch, index: int) -> bool:
        """Whether an item does not wait for those of its key. One that ran before had its turn, and does."""
        overlap: FromHeader | str = self._overlap
        if isinstance(overlap, FromHeader):
            overlap = dict(batch.headers[index]).get(overlap.header, overlap.default)
        return overlap == "skip" and not part.is_troubled(batch.positions[index : index + 1])

    def _key(self, mapped: Mapped, index: int) -> str | None:
        """The key of the line that an item belongs to; None: it is in no order."""
        if not self._by_key:
            return ""
        extra = mapped.extras.get(index)
        return (extra.key or None) if extra is not None else None

    def handed_out(self, part: Partition, batch: StreamBatch) -> None:
        """A batch was pushed."""
        if part.order is not None:
            part.order.handed_out(batch.positions, self._clock.monotonic())

    def family(self, part: Partition, position: int) -> Family:
        """How an item settles: in order it is held and tried again from the source, else it is parked."""
        return Family.ORDERED if part.order is not None and part.order.is_head(position) else Family.STREAM

    # What a former owner handed out, and still runs or may run: see inherited.py.

    def pieces(self, batch: StreamBatch) -> Iterable[StreamBatch]:
        """A batch in which there may be such items, so that each of its items meets the others in its turn."""
        return [chosen(batch, [index]) for index in range(len(batch.positions))] if self._on else [batch]

    def shut(self, part: Partition, *, shut: bool) -> None:
        """Whether some of it has not been read yet: until then nothing in order is handed out."""
        if not self._on or self._order(part).shut == shut:
            return
        self._order(part).shut = shut
        if not shut:
            self._free(part, self._order(part).open())

    def runs(self, part: Partition, batch: StreamBatch) -> bool:
        """One such item. True: nothing of its key comes before it. False: it waits in its line, to run again after
        those; nothing of its key is handed out until it `stopped`."""
        mapped = self._aim.mapping.map(batch)
        key = self._key(mapped, 0) if self._on else None
        if key is None:
            return True
        if not self._order(part).adopt(key, batch.positions[0], mapped.kinds[0]):
            self._holding.keep(part, batch, 0)
            return False
        self.handed_out(part, batch)
        return True

    def stopped(self, part: Partition, position: int, not_before: float) -> None:
        """One that waits in its line does not run any more, or not after that time."""
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
