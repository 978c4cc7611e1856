"""`delay_log` in stores.yaml names another log, or the log lost its end: nothing that is parked is taken for done."""

from __future__ import annotations

from pathlib import Path

import pytest

from tailrace.assembly.delay_log_marks import DUE, forget_marks_of_another_log, log_name
from tailrace.assembly.embedded import STAMPED, EmbeddedStores
from tailrace.delay_service.config import DelayConfig
from tailrace.delay_service.leadership import SOURCE
from tailrace.delay_service.mover import Mover
from tailrace.delay_service.service import DelayService
from tailrace.model.errors import ConfigError
from tailrace.model.parked import Parked
from tailrace.model.workload import Kind
from tailrace.stores.checkpoints.checkpoints import Mark
from tailrace.stores.config import StoresConfig
from tailrace.stores.log.log import Record
from tailrace.stores.restored import Stamp
from tailrace.testing.clock import ManualClock

REDIS = {"engine": "redis", "url": "redis://:secret@127.0.0.1:1/0"}


async def test_what_waits_in_the_former_file_is_not_left_behind(tmp_path: Path) -> None:
    # Given a node with a parked item in its delay.db
    async with EmbeddedStores(tmp_path) as stores:
        await stores.delay_log.append("delay.5s", 0, [Record(b"")])
        await stores.delay_log.append("unreadable.delay", 0, [Record(b"")])
    # When the log is to be elsewhere, then the node says so and does not start
    with pytest.raises(ConfigError, match=r"delay.db still has 1 items .*1 in delay.5s"):
        async with EmbeddedStores(tmp_path, StoresConfig(delay_log=REDIS)):
            pass
    # And when it has moved on and is done, it starts, although the server is away
    async with EmbeddedStores(tmp_path) as stores:
        await stores.delay_log.trim("delay.5s", 0, 1)
    async with EmbeddedStores(tmp_path, StoresConfig(delay_log=REDIS)):
        pass


async def test_what_is_parked_in_another_log_is_moved_on_however_far_the_former_had_come(tmp_path: Path) -> None:
    # Given checkpoints of a log on a server, and a node whose log is a file from now on
    async with EmbeddedStores(tmp_path) as stores:
        await _reached(stores, 40_000)
        await forget_marks_of_another_log(stores.checkpoints, stores.ownership, stores.delay_log, REDIS)
        assert not await stores.checkpoints.load(SOURCE) and not await stores.checkpoints.load(DUE)
        await _reached(stores, 40_000)
    clock = ManualClock()
    async with EmbeddedStores(tmp_path, clock=clock) as stores:
        # When an item is parked and has waited, then it moves on
        service = DelayService(stores.delay_log, DelayConfig(), clock)
        await service.park([Parked("t", "a", Kind("f"), b"", clock.wall() + 5.0, clock.wall())])
        mover = Mover(stores.delay_log, stores.checkpoints, stores.ownership, DelayConfig(), clock)
        clock.advance(6.0)
        for rung in await mover.open():
            await mover.step(rung)
        assert (await stores.delay_log.bounds("due.f"))[0].end == 1
        assert "f" not in await stores.checkpoints.load(DUE)


@pytest.mark.parametrize("source", [SOURCE, DUE])
async def test_a_log_that_lost_its_end_is_read_from_its_start(tmp_path: Path, source: str) -> None:
    stream, partition = {SOURCE: ("delay.5s", "delay.5s"), DUE: ("due.f", "f")}[source]
    # Given a checkpoint at the end of a stream: it is believed
    async with EmbeddedStores(tmp_path) as stores:
        await stores.delay_log.append(stream, 0, [Record(b"")] * 3)
        await stores.checkpoints.open(source, 1)
        await stores.checkpoints.commit(source, 1, {partition: Mark(3)})
    async with EmbeddedStores(tmp_path) as stores:
        assert (await stores.checkpoints.load(source))[partition].position == 3
    # When the file was lost, and is to begin anew, then it is not
    (tmp_path / "delay.db").unlink()
    Stamp(tmp_path, STAMPED).begin_anew("delay.db")
    async with EmbeddedStores(tmp_path) as stores:
        assert not await stores.checkpoints.load(source)


async def test_what_was_trimmed_of_what_is_due_is_not_lost(tmp_path: Path) -> None:
    # Given a stream of what is due, of which the first records are done and trimmed, and a checkpoint of another log
    async with EmbeddedStores(tmp_path) as stores:
        await stores.delay_log.append("due.f", 0, [Record(b"")] * 5)
        await stores.delay_log.trim("due.f", 0, 3)
        row = await stores.ownership.take(DUE, "", "tailer", 10.0, 0)
        assert row is not None
        await stores.checkpoints.open(DUE, row.epoch)
        await stores.checkpoints.commit(DUE, row.epoch, {"f": Mark(40_000, handed_out=40_000)})
    # When the node starts, then it is read from its start
    async with EmbeddedStores(tmp_path) as stores:
        assert await stores.checkpoints.load(DUE) == {"f": Mark(3)}


def test_a_log_is_known_by_where_it_is_and_its_password_is_not_told() -> None:
    assert log_name({"engine": "sqlite"}) == ""
    assert log_name(REDIS) == log_name(REDIS | {"timeout": "3s"})
    assert len({log_name(REDIS), log_name(REDIS | {"prefix": "p"}), log_name({"engine": "kafka"})}) == 3
    assert "secret" not in log_name(REDIS)


async def _reached(stores: EmbeddedStores, position: int) -> None:
    """Sets the checkpoints of the mover and of the tailer of due items."""
    for source, partition in ((SOURCE, "delay.5s"), (DUE, "f")):
        await stores.checkpoints.open(source, 1)
        await stores.checkpoints.commit(source, 1, {partition: Mark(position)})
