"""Mistakes in the platform's own streams, the rungs of delays and the streams of due items, and in their
checkpoints."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from ....assembly import embedded
from ....delay_service.mover import Mover, Rung
from ....stores.checkpoints import sqlite as checkpoints_
from ....stores.checkpoints.checkpoints import Mark
from ....tailers.checkpoint import Checkpoint
from ....tailers.copy_starts import CopyStarts
from ....tailers.supervisor import DUE
from ....tailers.surroundings import Push
from ..planting import Bug, breaks, bug, instead


@bug
def _a_copy_that_runs_is_passed() -> Bug:
    real = CopyStarts.started

    def started(self: CopyStarts, steps: Any) -> list[Push]:
        pushes = real(self, steps)
        for items, *_ in pushes:
            for index, position in items.places():
                items.part(index).frontier.settle([position])
        return pushes

    return instead(CopyStarts, "started", started)


@bug
def _a_rung_is_trimmed_before_it_commits() -> Bug:
    """A mistake that is harmless until the files are put back from a copy of just then."""

    async def step(self: Mover, rung: Rung) -> float | None:
        position, sleep = await rung.move()
        if position > rung.position:
            former, rung.position = rung.position, position
            await rung.trim()
            rung.position = former
            await self._checkpoints.commit("@delay", self._leadership.epoch, {rung.stream: Mark(position)})
            rung.position = position
        return sleep

    return instead(Mover, "step", step)


@bug
def _a_rung_is_trimmed_without_asking() -> Bug:
    """A mistake that is harmless until the stores are put back under it."""

    async def step(self: Mover, rung: Rung) -> float | None:
        position, sleep = await rung.move()
        if position > rung.position:
            await self._commit(rung, position)
        if rung.to_trim(sleep):
            await rung.trim()
        return sleep

    return instead(Mover, "step", step)


@bug
@contextlib.contextmanager
def _what_is_due_is_trimmed_without_asking() -> Iterator[None]:
    """A mistake that needs stores which believe every checkpoint: at their start they would forget those of another
    log."""
    real = Checkpoint.tell

    async def tell(self: Checkpoint, *, asked: bool = False) -> None:
        await real(self, asked=True)

    async def forgets_nothing(*_: Any) -> None:
        """Believes every checkpoint."""

    with instead(Checkpoint, "tell", tell), instead(embedded, "forget_marks_of_another_log", forgets_nothing):
        yield


@breaks("L13", by="the checkpoint")
def _the_checkpoint_of_what_is_due_goes_back_with_a_late_write() -> Bug:
    real: Any = vars(checkpoints_)["insert"]

    def insert(connection: Any, table: str, rows: Any, **options: Any) -> None:
        if table == "checkpoint_marks" and rows and rows[0][0] == DUE:
            options["behind"] = options["behind"].partition(" WHERE")[0]
        real(connection, table, rows, **options)

    return instead(checkpoints_, "insert", insert)
