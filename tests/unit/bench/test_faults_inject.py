"""Faults that show something only while they last: a store that starts although a file of it is gone, and a part that
keeps what strangers begin, are found; and ones that do as they should are not."""

from __future__ import annotations

import asyncio
import os
import struct
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tailrace.bench.faults import strangers
from tailrace.bench.faults.inject import Injector
from tailrace.bench.faults.plan import STRANGER, Breakage, FaultStep
from tailrace.bench.faults.strangers import SETTINGS, WINDOW, frame


class StorePart:
    """A store that is started again whenever it ends, unless `refuses` says no to what it finds then."""

    def __init__(self, refuses: Callable[[], bool]) -> None:
        self.ready = asyncio.Event()
        self.ready.set()
        self.deaths = self.refusals = 0
        self._refuses = refuses

    @property
    def processes(self) -> list[int]:
        """No process; who asks is about to end it."""
        asyncio.get_running_loop().call_soon(self._ends)
        return []

    def _ends(self) -> None:
        self.ready.clear()
        self.deaths += 1
        self._starts()

    def _starts(self) -> None:
        if self._refuses():
            self.refusals += 1
            asyncio.get_running_loop().call_later(0.02, self._starts)
        else:
            self.ready.set()


async def performed(world: Any, action: Breakage) -> list[str]:
    """The laws that doing this to a world shows to be broken."""
    injector = Injector(world, 0.1, lambda item: asyncio.sleep(0, None), seed=1)
    async with asyncio.timeout(30):
        await injector.perform(FaultStep((action,), 0.0))
    return [finding.law for finding in injector.found]


@pytest.mark.parametrize(("careless", "found"), [(False, []), (True, ["began_anew"])])
async def test_a_store_that_starts_without_one_of_its_files_is_found(
    tmp_path: Path, careless: bool, found: list[str]
) -> None:
    # Given a store with two files, which starts whatever it finds if it is careless
    files = {tmp_path / name: name.encode() for name in ("queue.db", "queue.db-wal", "state.db")}
    for file, content in files.items():
        file.write_bytes(content)

    def is_gone() -> bool:
        return not all(file.exists() and file.stat().st_size for file in files)

    part = StorePart(lambda: is_gone() and not careless)
    world = SimpleNamespace(data=tmp_path, parts={"store": part})
    # When one of them is gone for a while
    laws = await performed(world, Breakage("gone", "store"))
    # Then it is known whether the store began anew; if not, all is as it was
    assert laws == found
    assert careless or {file: file.read_bytes() for file in files} == files


@pytest.mark.parametrize(("window", "found"), [(0, []), (1 << 24, ["kept_for_strangers"])])
async def test_a_part_that_keeps_what_strangers_begin_is_found(
    monkeypatch: pytest.MonkeyPatch, window: int, found: list[str]
) -> None:
    # Given a server that keeps whatever it is sent, and allows each call that much
    monkeypatch.setattr(strangers, "SENT", 1 << 18)
    kept: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(frame(SETTINGS, 0, 0, struct.pack(">HI", 4, window or 65_535)))
        if window:
            writer.write(frame(WINDOW, 0, 0, struct.pack(">I", 1 << 30)))
        while data := await reader.read(1 << 16):
            kept.append(bytes(bytearray(data)))
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    ready = asyncio.Event()
    ready.set()
    part = SimpleNamespace(ready=ready, pid=os.getpid())
    world = SimpleNamespace(parts={"gateway": part}, ports={"gateway": address})
    # When strangers begin hundreds of messages there, then it is known whether they were kept
    async with server:
        assert await performed(world, Breakage(STRANGER, "gateway")) == found
