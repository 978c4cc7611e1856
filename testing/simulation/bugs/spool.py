"""Mistakes of a gateway that spools while its store is away."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ....gateway.rules.spool import SpoolRule
from ....gateway.spooling import Spooler
from ....stores.queue.ids import id_number
from ....stores.spool.spool import PREFIX
from ..planting import Bug, bug, instead


@bug
def _a_spool_drains_beside_newer_submissions_of_its_keys() -> Bug:
    real = SpoolRule.way
    return instead(SpoolRule, "way", lambda self, ordered: real(self, False))


@bug
def _what_is_spooled_leaves_before_the_queue_has_it() -> Bug:
    async def bring(self: Spooler, batch: Any) -> None:
        spool: Any = self._spool
        await spool.became([each.id for each in batch], ["" for _ in batch])
        stored = await self._queue.submit([each.item for each in batch])
        names = [(new.id, id_number(each.id.removeprefix(PREFIX))) for each, new in zip(batch, stored, strict=True)]
        statement = "UPDATE left_spool SET became = ? WHERE id = ?"
        await spool._file.write(lambda connection: connection.executemany(statement, names) and None)

    return instead(Spooler, "_bring_batch", bring)


@bug
def _what_an_earlier_run_spooled_is_not_counted() -> Bug:
    real = Spooler.start

    async def start(self: Spooler) -> None:
        await real(self)
        self._rule.holds(0, 0)

    return instead(Spooler, "start", start)


@bug
def _who_leaves_takes_the_count_of_what_is_spooled_along() -> Bug:
    async def spooled(self: Spooler, items: Any) -> Any:
        self._rule.entering += len(items)
        return await self._keep(items)

    return instead(Spooler, "_spooled", spooled)


@bug
def _what_is_spooled_is_brought_under_another_token() -> Bug:
    async def bring(self: Spooler, batch: Any) -> None:
        items = [replace(each.item, dedupe_key="") for each in batch]
        stored = await self._queue.submit(items)
        await self._spool.became([each.id for each in batch], [each.id for each in stored])

    return instead(Spooler, "_bring_batch", bring)
