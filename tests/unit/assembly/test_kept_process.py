"""A part that is kept running is started again, whatever fails: its start, or who is told of it."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tailrace.assembly import foreground, processes
from tailrace.assembly.parts import MetricsSettings
from tailrace.assembly.processes import Child, KeptProcess, PartFailed
from tailrace.model.backoff import Pauses

SETTINGS = MetricsSettings(listen="127.0.0.1:0", gateway="127.0.0.1:1")


class Parts:
    """Stands in for `spawn`. Of each start it is given what to raise, or None: then the part begins, and dies at once
    while another start is given."""

    def __init__(self, *starts: Exception | None) -> None:
        self._starts = list(starts)
        self.all_begun = asyncio.Event()

    async def spawn(self, *_: object) -> Child:
        failure = self._starts.pop(0)
        if failure is not None:
            raise failure
        status = 1 if self._starts else None
        if status is None:
            self.all_begun.set()
        process: Any = SimpleNamespace(poll=lambda: status, returncode=status, pid=7)
        return Child("metrics", process, -1)


@asynccontextmanager
async def kept(
    parts: Parts, monkeypatch: pytest.MonkeyPatch, **told: Callable[..., None]
) -> AsyncIterator[KeptProcess]:
    monkeypatch.setattr(processes, "spawn", parts.spawn)
    monkeypatch.setattr(processes, "STORE", Pauses(0.001, 0.002))
    keeping = KeptProcess("metrics", lambda: SETTINGS, **told)
    await keeping.start()
    try:
        async with asyncio.timeout(20):
            await parts.all_begun.wait()
        yield keeping
    finally:
        await keeping._forget()


async def test_a_part_is_started_again_though_nobody_can_be_told(monkeypatch: pytest.MonkeyPatch) -> None:
    # Given those who are told, whose standard error is gone
    def gone(*_: object) -> None:
        raise BrokenPipeError("standard error is gone")

    # When the part dies twice, Then it is started again each time
    async with kept(Parts(None, None, None), monkeypatch, on_ready=gone, on_death=gone) as keeping:
        assert keeping.child is not None


async def test_a_part_is_started_again_though_a_start_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    # Given a part that dies, and a machine that cannot start it for a while
    heard: list[str] = []
    parts = Parts(None, PartFailed("metrics", 3), OSError(11, "no process left"), None)
    # When it is kept running, Then it is started again, and operators are told why it was not
    async with kept(parts, monkeypatch, on_death=lambda name, why: heard.append(why)) as keeping:
        assert keeping.child is not None
    assert heard == ["exit status 1", "exit status 3", "it could not be started: [Errno 11] no process left"]


@pytest.mark.parametrize("call", ["pipe", "Popen"])
async def test_a_start_that_the_system_refuses_is_told_and_leaves_no_descriptor(
    monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    # Given a system that has no process left, or no descriptor for the second pipe
    before = set(Path("/proc/self/fd").iterdir())
    first = [os.pipe]

    def refuses(*_: object, **__: object) -> Any:
        if call == "pipe" and first:
            return first.pop()()
        raise OSError(11, "none left")

    monkeypatch.setattr(*((os, "pipe") if call == "pipe" else (subprocess, "Popen")), refuses)
    # When a part is started, Then it is told so
    with pytest.raises(PartFailed, match=r"the metrics could not be started: \[Errno 11\] none left") as failed:
        await processes.spawn(SETTINGS)
    assert failed.value.code is None
    # And no end of a pipe is left
    assert set(Path("/proc/self/fd").iterdir()) <= before


def test_who_cannot_be_told_what_parts_do_stops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    # Given a standard error whose reader has gone
    def gone(*_: object) -> None:
        raise BrokenPipeError("standard error is gone")

    monkeypatch.setattr("sys.stderr", SimpleNamespace(write=gone, flush=gone))
    # When it is told something, Then nothing is raised
    foreground._sayer(False)("node", "died", "exit status 1")
