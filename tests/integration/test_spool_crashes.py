"""Every durable write of a gateway's spool and of the drain behind it: a crash before it and one after it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from servers.fickle_queue import FickleQueue

from tailrace.assembly.embedded import EmbeddedStores
from tailrace.foundation.duties import Duties
from tailrace.gateway.rules import spool as rule
from tailrace.gateway.rules.spool import SpoolRule
from tailrace.gateway.spooling import Spooler
from tailrace.model.backoff import Pauses
from tailrace.model.function_spec import FunctionSpec
from tailrace.model.one_item import CHANGED
from tailrace.model.workload import Kind
from tailrace.stores.queue.queue import NewItem, Reschedule
from tailrace.stores.spool import sqlite as spool_sqlite
from tailrace.stores.spool.sqlite import SqliteSpool
from tailrace.stores.sqlite.file import SqliteFile
from tailrace.testing.clock import ManualClock
from tailrace.testing.crash_points import explore, passed

#: What is submitted: three that stay, of which the last is moved in the spool, one that is cancelled there, one that
#: the queue never takes.
NAMES = ("a", "b", "stopped", "bad", "c")


@dataclass
class Opened:
    queue: FickleQueue
    spool: SqliteSpool
    spooler: Spooler


@contextlib.asynccontextmanager
async def opening(folder: Path, clock: ManualClock, file: type[SqliteFile]) -> AsyncIterator[Opened]:
    """Opens a queue that is away at first, the spool, and the drain between them."""
    limits = SpoolRule(100, 1 << 20)
    spool_file = file(folder / "spool.db", spool_sqlite.SCHEMA, name="spool")
    async with EmbeddedStores(folder, clock=clock, file=file) as stores:
        await spool_file.open()
        try:
            spool = SqliteSpool(spool_file, clock, room=limits.check_room)
            await spool.open()
            queue = FickleQueue(stores.queue)
            queue.trouble, queue.refused = "away", {b"bad"}
            spooler = Spooler(queue, spool, limits, clock, 5.0, Duties("spool"))
            await spooler.start()
            try:
                yield Opened(queue, spool, spooler)
            finally:
                await spooler.stop()
        finally:
            await spool_file.close()


class SpoolStory:
    """A story of items that are submitted while the store is away, under a token that is sent again when no answer
    came; then they are brought there."""

    points = 18

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.told: dict[str, str] = {}
        self.known = self.stopped = self.moved = False

    async def act(self, opened: Opened) -> None:
        if not self.known:
            await opened.spool.remember([FunctionSpec("f")])
            self.known = True
        for name in NAMES:
            if name not in self.told:
                (answer,), spooled = await opened.spooler.submit(
                    [NewItem(Kind("f", 2), name.encode(), dedupe_key=f"submission:{name}")]
                )
                assert spooled
                self.told[name] = answer.id
        if not self.stopped:
            await opened.spooler.cancel([self.told["stopped"]])
            self.stopped = True
        if not self.moved:
            assert await opened.spooler.reschedule(Reschedule(self.told["c"], 1e9, 1)) == CHANGED
            self.moved = True
        opened.queue.trouble = "none"
        while (await opened.spool.held()).items:
            await asyncio.sleep(0.001)

    async def check(self, opened: Opened) -> None:
        if self.known:
            assert [spec.name for spec in await opened.spool.functions()] == ["f"]
        for name, id in self.told.items():
            (found,) = await opened.spool.find([id])
            assert found is not None, f"{name} was accepted and is gone"
            assert not (found.cancelled and name != "stopped")
            assert found.kind.priority == (1 if name == "c" and self.moved else found.kind.priority)
            if name == "stopped" and self.stopped:
                assert found.cancelled or found.became

    async def end(self, opened: Opened) -> None:
        found = dict(zip(NAMES, await opened.spool.find([self.told[name] for name in NAMES]), strict=True))
        there = {name: each.became for name, each in found.items() if each is not None and each.became}
        opened.queue.trouble = "none"
        assert there.keys() == {"a", "b", "stopped", "c"}
        states = dict(zip(there, await opened.queue.status(list(there.values())), strict=True))
        labels = {name: each.state.label for name, each in states.items() if each is not None}
        assert labels == {"a": "new", "b": "new", "stopped": "cancelled", "c": "new"}
        moved = states["c"]
        assert moved is not None and (moved.kind.priority, moved.due) == (1, 1e9)
        assert sum((await opened.queue.counts()).values()) == 4, "brought twice"
        assert sorted(there, key=lambda name: there[name]) == ["a", "b", "stopped", "c"], "not in order"
        assert (await opened.spool.refused(), found["bad"].reason[:20]) == (1, "the queue refused it")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rule, "SPOOL", Pauses(0.001, 0.002))


async def test_nothing_accepted_is_lost_or_brought_twice_by_a_crash_at_any_point(tmp_path: Path) -> None:
    points = await explore(SpoolStory, tmp_path, opening=opening)
    assert len(points) == SpoolStory.points, [str(point) for point in points]


@pytest.mark.long(minutes=0.3)
@pytest.mark.timeout(1800)
async def test_nor_by_a_second_crash_while_the_first_is_recovered_from(tmp_path: Path) -> None:
    await explore(SpoolStory, tmp_path, again=None, opening=opening)


async def test_the_story_passes_every_method_that_writes(tmp_path: Path) -> None:
    points = await passed(SpoolStory, tmp_path, opening=opening)
    written = {name for point in points for name in point.writes if name.startswith("SqliteSpool.")}
    methods = {"add", "became", "refuse", "cancel", "remember", "reschedule"}
    assert written == {f"SqliteSpool.{name}" for name in methods}
