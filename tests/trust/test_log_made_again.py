"""A log of ours that was begun anew is not read from where another one was left."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from scenes import commands

from tailrace.assembly.platform import Platform
from tailrace.model.overview import TailerOverview
from tailrace.stores.log.log import Record
from tailrace.stores.remote import RemoteLog
from tailrace.wire.gateway import GatewayClient

FUNCTIONS = """
import os
import tailrace

@tailrace.function
async def note(what: str) -> None:
    with open(os.environ["TAILRACE_TEST_NOTES"], "a") as notes:
        notes.write(what + "\\n")
"""


def platform_of(folder: Path, *tailers: str, more: str = "") -> Platform:
    """A platform with tailers of these names; `more`: another option of their sources."""
    (folder / "noting.py").write_text(FUNCTIONS)
    for name in tailers:
        file = folder / f"{name}.yaml"
        file.write_text(f"name: {name}\nsource: {{kind: log, stream: orders{more}}}\nfunction: note\n")
    return Platform(
        folder / "data",
        [str(folder / "noting.py")],
        tailers=[folder / f"{name}.yaml" for name in tailers],
        heartbeat=0.5,
        environment={"TAILRACE_TEST_NOTES": str(folder / "notes")},
    )


async def appended(platform: Platform, what: str, count: int) -> None:
    records = [Record(b'{"what": "%s"}' % what.encode()) for _ in range(count)]
    async with RemoteLog(platform.store_address) as log:
        await log.append("orders", 0, records)


async def noted(folder: Path, what: str, count: int) -> None:
    """Waits until so many runs noted this."""
    async with asyncio.timeout(30):
        while not (folder / "notes").exists() or (folder / "notes").read_text().split().count(what) < count:
            await asyncio.sleep(0.05)


async def tailer(platform: Platform, name: str) -> TailerOverview:
    async with GatewayClient(platform.gateway_address) as gateway:
        found = [each for each in (await gateway.overview()).tailers if each.name == name]
    return found[0] if found else TailerOverview(name, "", "")


@pytest.mark.trust(point=2)
@pytest.mark.long(minutes=0.3)
async def test_a_log_that_was_begun_anew_stops_its_tailer_with_what_to_do(tmp_path: Path) -> None:
    # Given a stream that was read up to its end, and whose log's file is then lost
    platform = platform_of(tmp_path, "orders")
    try:
        await platform.start()
        await appended(platform, "former", 20)
        await noted(tmp_path, "former", 20)
        async with asyncio.timeout(30):
            while (await tailer(platform, "orders")).settled < 20:
                await asyncio.sleep(0.05)
        await platform.drain(10)
    finally:
        await platform.stop()
    (tmp_path / "data" / "log.db").unlink()
    await asyncio.to_thread(commands.tailrace, "store", "begin-anew", "log.db", "--data", str(tmp_path / "data"))
    # When more records than were read come into the log that is begun anew, before the tailer starts again
    platform = platform_of(tmp_path)
    try:
        await platform.start()
        await appended(platform, "other", 30)
        await platform.drain(10)
    finally:
        await platform.stop()
    platform = platform_of(tmp_path, "orders")
    try:
        await platform.start()
        # Then it does not pass them over: it stops, and says why and what to do
        async with asyncio.timeout(30):
            while (stopped := await tailer(platform, "orders")).state != "failed":
                await asyncio.sleep(0.05)
        assert "begun anew" in stopped.detail and "on_recreated: from_start" in stopped.detail
        await platform.drain(10)
    finally:
        await platform.stop()
    # And once its file says so, all of them run
    platform = platform_of(tmp_path, "orders", more=", on_recreated: from_start")
    try:
        await platform.start()
        await noted(tmp_path, "other", 30)
        assert (tmp_path / "notes").read_text().split().count("former") == 20
        await platform.drain(10)
    finally:
        await platform.stop()
