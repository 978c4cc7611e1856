"""A log and a folder as sources, with every process real: failures go round by the delay service, the checkpoint on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

import tailrace
from tailrace.assembly.platform import Platform
from tailrace.model.overview import TailerOverview
from tailrace.stores.log.log import Record
from tailrace.stores.remote import RemoteCheckpoints, RemoteLog
from tailrace.tailers.sources.directory import DirectoryOptions, fingerprint
from tailrace.wire.gateway import GatewayClient

FUNCTIONS = str(Path(__file__).parent / "journaled_functions.py")
LOG = """\
name: orders
source: {kind: log, stream: orders}
function: {header: function, default: work}
results: true
"""
FOLDER = """\
name: inbox
source: {kind: directory, path: %s, include: ["*.txt"], poll: 100ms}
function: measure
results: true
"""


@pytest.fixture
async def platform(tmp_path: Path) -> AsyncIterator[Platform]:
    (tmp_path / "inbox").mkdir()
    (tmp_path / "orders.yaml").write_text(LOG)
    (tmp_path / "inbox.yaml").write_text(FOLDER % (tmp_path / "inbox"))
    running = Platform(
        tmp_path / "data",
        [FUNCTIONS],
        tailers=[tmp_path / "orders.yaml", tmp_path / "inbox.yaml"],
        heartbeat=0.5,
        environment={"TAILRACE_TEST_JOURNAL": str(tmp_path / "journal")},
    )
    try:
        await running.start()
        yield running
        await running.drain(10)
    finally:
        await running.stop()


async def test_one_failing_item_never_stops_the_checkpoint_and_comes_back(platform: Platform) -> None:
    # Given a log of which one item fails at first, and one for ever
    records = [Record(b"{}")] * 50
    records[3] = Record(b'{"fail_first": 1}')
    records[7] = Record(b'{"why": "no such customer"}', headers=(("function", "never_again"),))
    async with RemoteLog(platform.store_address) as log:
        await log.append("orders", 0, records)
    # When it is read, then the checkpoint passes both
    async with (
        RemoteCheckpoints(platform.store_address) as checkpoints,
        GatewayClient(platform.gateway_address) as gateway,
    ):

        async def position() -> int:
            marks = await checkpoints.load("orders")
            return marks["0"].position if "0" in marks else 0

        await until(lambda: equals(position, 50))
        tailer = await tailer_of(gateway, "orders")
        assert (tailer.parked, tailer.dead) == (1, 1)
        # And the first comes back by the delay service, the other is a dead letter with its reason
        async with tailrace.AsyncClient(platform.gateway_address) as client:
            assert await client.result("orders/0/0") == "done orders/0/0"
            await until(lambda: equals(lambda: settled(gateway, "due"), 1))
        letter = await gateway.dead_letter("orders/0/7")
        assert (letter.reason, letter.payload) == ("no such customer", b'{"why": "no such customer"}')


async def test_new_and_changed_files_are_run_and_those_that_vanish_are_passed(
    platform: Platform, tmp_path: Path
) -> None:
    inbox = tmp_path / "inbox"
    (inbox / "a.txt").write_text("four")
    (inbox / "b.log").write_text("not wanted")
    async with GatewayClient(platform.gateway_address) as gateway:
        await until(lambda: equals(lambda: settled(gateway, "inbox"), 1))
        (inbox / "a.txt").write_text("changed")
        (inbox / "c.txt").write_text("")
        await until(lambda: equals(lambda: settled(gateway, "inbox"), 3))
    async with tailrace.AsyncClient(platform.gateway_address) as client:
        partition = fingerprint(DirectoryOptions(path=str(inbox), include=("*.txt",)))
        found = sorted([await client.result(f"inbox/{partition}/{number}") for number in range(3)])
    assert found == ["a.txt 4", "a.txt 7", "c.txt 0"]


async def tailer_of(gateway: GatewayClient, name: str) -> TailerOverview:
    overview = await gateway.overview()
    return next((each for each in overview.tailers if each.name == name), TailerOverview(name, "", ""))


async def settled(gateway: GatewayClient, name: str) -> int:
    return (await tailer_of(gateway, name)).settled


async def equals(ask: Callable[[], Awaitable[int]], wanted: int) -> bool:
    return await ask() == wanted


async def until(true: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(30):
        while not await true():
            await asyncio.sleep(0.05)
