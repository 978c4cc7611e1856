"""Mistakes of a tailer that carries the rows of an outbox."""

from __future__ import annotations

from functools import partial
from typing import Any

from ....stores.outbox.item import item_of
from ....stores.queue.admission import SUBMISSION_PREFIX
from ....tailers.pumps import relay_pump as relay_
from ....tailers.pumps.relay_pump import RelayPump
from ..planting import Bug, bug, instead
from ..sqlite_shop import SimOutbox


@bug
def _a_row_goes_from_its_outbox_before_the_queue_has_it() -> Bug:
    real = RelayPump._submit

    async def submit(self: RelayPump, items: Any) -> Any:
        tokens = {place: item.dedupe_key.removeprefix(SUBMISSION_PREFIX) for place, item in items.items()}
        await self.source.remove(tokens)
        return await real(self, items)

    return instead(RelayPump, "_submit", submit)


@bug
def _a_row_that_is_carried_twice_is_two_workloads() -> Bug:
    return instead(relay_, "item_of", partial(item_of, token=False))


@bug
def _a_relay_removes_nothing() -> Bug:
    async def remove(self: SimOutbox, rows: Any) -> None:
        """Leaves the rows there."""

    return instead(SimOutbox, "remove", remove)


@bug
def _a_relay_carries_the_newest_rows_first() -> Bug:
    real = SimOutbox.take

    async def take(self: SimOutbox, *most: Any) -> Any:
        return list(reversed(await real(self, *most)))

    return instead(SimOutbox, "take", take)
