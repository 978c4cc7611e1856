"""Failures in a part that runs: an accident is tried again and told, and a failure beyond its own handling closes the
part, which opens again; nothing ends unheard, and the end closes the stores despite any failure."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tailrace.assembly import embedded
from tailrace.assembly.node import Node
from tailrace.bench.faults.disk import SmallDisk
from tailrace.delay_service.leadership import MoverLeadership
from tailrace.foundation.clock import SYSTEM_CLOCK
from tailrace.gateway.status import StatusDesk
from tailrace.model.alert import Alert
from tailrace.model.errors import NotConnected, Unavailable
from tailrace.model.gate import Gate
from tailrace.model.parked import Parked
from tailrace.model.workload import Kind
from tailrace.stores.queue.queue import NewItem
from tailrace.stores.queue.sqlite.memory import Memory
from tailrace.stores.sqlite import connecting
from tailrace.tailers.supervisor import Tailers
from tailrace.wire.delay import DelayClient
from tailrace.wire.gateway import GatewayClient

from ..scenes import lone_node
from ..scenes.lone_node import until

#: Holds the write lock of a file until its standard input ends.
HOLDER = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=60)
connection.execute("BEGIN IMMEDIATE")
print("held", flush=True)
sys.stdin.read()
"""


@asynccontextmanager
async def node(folder: Path, stores: str = "") -> AsyncIterator[Node]:
    """A node without a scheduler, which ends in order."""
    config = folder / "config"
    config.mkdir()
    (config / "stores.yaml").write_text(stores)
    (config / "gateway.yaml").write_text("look_every: 0\n")
    async with lone_node.node(folder, config) as running:
        yield running
    # Nobody has the files any more, and they are whole.
    for file in (folder / "data").glob("*.db"):
        with sqlite3.connect(file, timeout=0) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        connection.close()
        assert not file.with_suffix(".db-wal").exists()


async def alert(operator: GatewayClient, code: str, what: str = "") -> Alert | None:
    alerts = (await operator.overview()).alerts
    return next((each for each in alerts if each.code == code and what in each.what), None)


async def test_retention_goes_on_after_another_process_kept_the_file_busy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedded, "SWEEP_PERIOD", 0.02)
    monkeypatch.setattr(connecting, "BUSY", 0.05)
    async with node(tmp_path, "retention: 1ms\n") as running, GatewayClient(running.address) as operator:
        # Given a process that writes the queue's file for longer than anybody waits
        file = tmp_path / "data" / "queue.db"
        arguments = [sys.executable, "-c", HOLDER, str(file)]
        holder = await asyncio.to_thread(
            subprocess.Popen, arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        try:
            assert holder.stdout is not None
            assert await asyncio.to_thread(holder.stdout.readline) == "held\n"
            # When the sweep meets it, Then operators are told, and what to do
            told = await until(lambda: alert(operator, "part", "the sweep of the queue"))
            assert told.subject == "stores"
            assert "another process writes this file" in told.what
        finally:
            await asyncio.to_thread(holder.communicate, "")
        # And when it is gone, what ended is forgotten as before
        queue = running._stores.queue
        [item] = await queue.submit([NewItem(Kind("f"), b"")])
        assert await queue.cancel([item.id]) == ["cancelled"]

        async def forgotten() -> bool:
            return not (await operator.overview()).queue["cancelled"]

        await until(forgotten)
        assert await until(gone(operator))


def gone(operator: GatewayClient) -> Callable[[], Awaitable[bool]]:
    async def look() -> bool:
        return await alert(operator, "part") is None

    return look


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[SmallDisk]:
    """A real file system on which nodes of this test have their data."""
    disk = SmallDisk(tmp_path / "data")
    if why := disk.mount():
        pytest.skip(why)
    yield disk
    disk.unmount()


async def test_retention_goes_on_after_the_disk_was_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small_disk: SmallDisk
) -> None:
    monkeypatch.setattr(embedded, "SWEEP_PERIOD", 0.02)
    async with node(tmp_path, "retention: 1ms\n") as running, GatewayClient(running.address) as operator:
        # Given much that ended, on a disk without any room
        queue, full = running._stores.queue, asyncio.Event()
        sweep = queue.sweep

        async def not_before() -> Any:
            await full.wait()
            return await sweep()

        monkeypatch.setattr(queue, "sweep", not_before)
        items = await queue.submit([NewItem(Kind("f"), b"x" * 2000) for _ in range(1000)])
        ended = await queue.cancel([item.id for item in items])
        small_disk.fill()
        with pytest.raises(OSError, match="space"), (small_disk.path / "filler").open("wb", buffering=0) as filler:
            while True:
                filler.write(bytes(4096))
        full.set()

        async def told() -> Alert | None:
            return await alert(operator, "part", "the sweep of the queue")

        # When it is to be forgotten, Then operators are told why that cannot be, and what to do
        assert "Free some space" in (await until(told)).what
        assert (await operator.overview()).queue["cancelled"] == len(ended) == 1000
        # And when there is room, it is forgotten, and nothing is wrong any more
        small_disk.make_room()

        async def forgotten() -> bool:
            return not (await operator.overview()).queue["cancelled"] and not await told()

        await until(forgotten)
        assert await queue.submit([NewItem(Kind("f"), b"")])


async def test_a_writer_that_dies_closes_the_stores_which_open_again(tmp_path: Path) -> None:
    async with node(tmp_path) as running, GatewayClient(running.address) as operator:
        queue, file = running._stores.queue, running._stores._queue_file
        assert file is not None
        [before] = await queue.submit([NewItem(Kind("f"), b"1")])

        # Given a write that ends the writer's thread with what nobody catches
        def die(connection: sqlite3.Connection) -> None:
            raise SystemExit("planted")

        # When it does, Then who waited for it is told
        with pytest.raises(NotConnected, match="planted"):
            await file.write(die)
        # And the stores are open again, with all that they had
        told = await until(lambda: alert(operator, "part", "the writer of queue.db"))
        assert told.subject == "stores"
        [after] = await until(lambda: queue.submit([NewItem(Kind("f"), b"2")]))
        assert after.id > before.id
        assert (await operator.overview()).queue["new"] == 2

        async def open_again() -> bool:
            return await alert(operator, "part", "it is open again") is not None

        assert await until(open_again)


async def test_a_memory_that_cannot_be_read_again_after_a_full_disk_closes_the_stores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a disk that is full, and of which what memory keeps cannot be read again for a while
    reload, fails = Memory.reload, iter([True] * 3)
    broken = False

    def maybe(memory: Memory, connection: sqlite3.Connection) -> None:
        if broken and next(fails, False):
            raise sqlite3.OperationalError("planted: disk I/O error")
        reload(memory, connection)

    monkeypatch.setattr(Memory, "reload", maybe)
    async with node(tmp_path) as running, GatewayClient(running.address) as operator:
        queue, file = running._stores.queue, running._stores._queue_file
        assert file is not None
        await queue.submit([NewItem(Kind("f"), b"1")])
        pages = await file.write(lambda c: int(c.execute("PRAGMA page_count").fetchone()[0]))
        await file.write(lambda c: c.execute(f"PRAGMA max_page_count = {pages}").fetchone())
        broken = True
        # When a submission does not fit
        with pytest.raises(Unavailable):
            await queue.submit([NewItem(Kind("f"), b"x" * 1_000_000), NewItem(Kind("f"), b"2")])
        # Then the stores open again, as soon as they can, and count what is there
        told = await until(lambda: alert(operator, "part", "queue"))
        assert told.subject == "stores"
        await until(lambda: queue.submit([NewItem(Kind("f"), b"3")]))
        assert next(fails, None) is None
        assert (await operator.overview()).queue["new"] == 2


async def test_a_mover_that_fails_beyond_its_own_handling_opens_again_under_a_new_epoch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a mover that fails as nobody foresaw, once
    keep, epochs = MoverLeadership.keep, []

    async def fails(leadership: MoverLeadership) -> None:
        epochs.append(leadership.epoch)
        if len(epochs) == 1:
            raise ValueError("planted, by a name that is no text: \udcff")
        await keep(leadership)

    monkeypatch.setattr(MoverLeadership, "keep", fails)
    async with node(tmp_path) as running, GatewayClient(running.address) as operator:
        # When it does, Then it opens again, which operators are told
        told = await until(lambda: alert(operator, "part"))
        assert (told.subject, "planted" in told.what) == ("delay service", True)

        async def again() -> bool:
            return len(epochs) == 2

        await until(again)
        assert epochs[1] > epochs[0]
        # And what is parked becomes due
        delay, log = DelayClient(running.addresses["delay"]), running._stores.delay_log
        now = SYSTEM_CLOCK.wall()
        await delay.park([Parked("t", "1", Kind("f"), b"", now + 0.2, now)])

        async def due() -> bool:
            return "due.f" in await log.streams()

        assert await until(due)
        await delay.close()


async def test_tailers_of_which_a_duty_fails_open_again_and_stay_paused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given tailers of which one is paused, and a look for what is due that fails as nobody foresaw, once
    looks: list[Tailers] = []
    find = Tailers._find_due

    async def fails(tailers: Tailers) -> None:
        looks.append(tailers)
        if len(looks) == 1:
            await paused.wait()
            raise ValueError("planted")
        await find(tailers)

    paused = asyncio.Event()
    monkeypatch.setattr(Tailers, "_find_due", fails)
    async with node(tmp_path) as running, GatewayClient(running.address) as operator:
        assert not await operator.pause_tailer(Gate("", "", "pause", source="queue"))
        first = running._tailers.tailer("queue")
        paused.set()
        # When it does, Then all of them end and begin anew, which operators are told
        told = await until(lambda: alert(operator, "part"))
        assert (told.subject, "planted" in told.what) == ("tailers", True)

        async def again() -> bool:
            now = running._tailers.tailer("queue")
            return len(looks) == 2 and now is not None and now is not first

        await until(again)
        # And what was paused by hand is
        [queue] = [each for each in (await operator.overview()).tailers if each.name == "queue"]
        assert queue.state == "paused"


async def test_a_gateway_of_which_a_duty_fails_opens_again_where_it_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a gateway whose wait for results fails as nobody foresaw, once
    poll, told = StatusDesk._poll, asyncio.Event()
    polls: list[StatusDesk] = []

    async def fails(desk: StatusDesk) -> None:
        polls.append(desk)
        if len(polls) == 1:
            await told.wait()
            raise ValueError("planted")
        await poll(desk)

    monkeypatch.setattr(StatusDesk, "_poll", fails)
    async with node(tmp_path) as running, GatewayClient(running.address) as operator:
        address = running.address
        assert await alert(operator, "part") is None
        # When it does, Then it is open again at the same address, and says so
        told.set()
        found = await until(lambda: alert(operator, "part"))
        assert (found.subject, "planted" in found.what) == ("gateway", True)

        async def again() -> bool:
            return len(polls) == 2

        await until(again)
        assert await until(lambda: alert(operator, "part"))
        assert running.address == address


async def test_the_stores_are_closed_whatever_failed_before(tmp_path: Path) -> None:
    # Given stores of which everything failed at the end
    stores = embedded.EmbeddedStores(tmp_path)
    await stores.start()

    async def fails() -> None:
        raise ValueError("planted")

    stores.queue.close = stores.delay_log.close = fails  # type: ignore[method-assign]
    stores.duties.begin(fails(), "a duty")
    # When they are stopped, Then the first error is raised
    with pytest.raises(ValueError, match="planted"):
        await stores.stop()
    # And another process may have them
    async with embedded.EmbeddedStores(tmp_path):
        pass
