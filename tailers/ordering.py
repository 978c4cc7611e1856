"""`order: key | partition` of one stream tailer: who must wait for whom before anything is pushed.

The rule is rules/order.py, one per partition; here it meets the batches and the memory of what waits.
"""

from __future__ import annotations

from collections import abc

from ..sdk.clock import Clock
from ..sdk.source import StreamBatch
from .config import TailerConfig
from .holding import Holding
from .mapping import Mapped, Mapping
from .partition import Partition, chosen
from .rules.order import PATIENCE, Order
from .rules.settlement import Family


class Ordering:
    """Invariants: with `order: none` no partition has lines and every method does nothing. With `order: key` an item
    without a key is in no line: it waits for nobody, and fails like one of `order: none`."""

    def __init__(
        self, config: TailerConfig, partitions: abc.Mapping[str, Partition], holding: Holding, clock: Clock
    ) -> None:
        self._on = config.order != "none"
        self._by_key = config.order == "key"
        self._most = config.window.items >> 1
        self._partitions = partitions
        self._holding = holding
        self._clock = clock

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

    def ready(self, part: Partition, batch: StreamBatch, mapping: Mapping) -> tuple[StreamBatch, Mapped]:
        """The items that wait for no other, mapped; the others are kept in their lines."""
        mapped = mapping.map(batch)
        going = self._heads(part, batch, mapped) if self._on else None
        if going is None:
            return batch, mapped
        batch = chosen(batch, going)
        return batch, mapping.map(batch)

    def _heads(self, part: Partition, batch: StreamBatch, mapped: Mapped) -> list[int] | None:
        """The indexes of items that wait for no other, None for all."""
        if part.order is None:
            part.order = Order()
        enter, positions, kinds, extras = part.order.enter, batch.positions, mapped.kinds, mapped.extras
        going: list[int] = []
        for index, position in enumerate(positions):
            key = ""
            if self._by_key:
                extra = extras.get(index)
                key = "" if extra is None else extra.key
                if not key:
                    going.append(index)
                    continue
            if enter(key, position, kinds[index]):
                going.append(index)
            else:
                self._holding.keep(part, batch, index)
        return None if len(going) == len(positions) else going

    def handed_out(self, part: Partition, batch: StreamBatch) -> None:
        """A batch was pushed."""
        if part.order is not None:
            part.order.handed_out(batch.positions, self._clock.monotonic())

    def family(self, part: Partition, position: int) -> Family:
        """How an item settles: in order it is held and tried again from the source, else it is parked."""
        return Family.ORDERED if part.order is not None and part.order.is_head(position) else Family.STREAM
