"""A part that is kept running is started again, though its start fails, or the receiver of its news does."""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import os
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from tailrace.assembly import foreground, processes
from tailrace.assembly.parts import MetricsSettings, PartSettings, WorkerSettings
from tailrace.assembly.processes import MARGIN, Child, KeptProcess, PartFailed
from tailrace.model.backoff import Pauses
from tailrace.model.errors import ConfigError

SETTINGS = MetricsSettings(listen="127.0.0.1:0", gateway="127.0.0.1:1")


class Parts:
    """Stand-in for `spawn`. Each start is given an error to raise, or None: then the part begins, and dies at once
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


class Idle:
    """Stand-in for `subprocess.Popen`: does nothing until it is killed. `told` has what each was told as it began; with
    `ready` it says that it is."""

    told: list[dict[str, Any]]
    ready = True

    def __init__(self, command: list[str], *, pass_fds: tuple[int, int], **_: object) -> None:
        self.told.append(json.loads(command[-1]))
        self.pid = 7
        self.returncode: int | None = None
        self._says = os.dup(pass_fds[1])
        if self.ready:
            os.write(self._says, b'{"pid": 7, "address": "", "addresses": {}}\n')

    def poll(self) -> int | None:
        return self.returncode

    def kill(self) -> None:
        self.returncode = -9
        os.close(self._says)


@pytest.fixture
def idle(monkeypatch: pytest.MonkeyPatch) -> type[Idle]:
    monkeypatch.setattr(Idle, "told", [], raising=False)
    monkeypatch.setattr(subprocess, "Popen", Idle)
    return Idle


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


async def test_a_part_is_started_again_though_a_start_failed(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    # Given a part that dies, and a machine that cannot start it for a while, and a file that somebody broke meanwhile
    heard: list[str] = []
    parts = Parts(None, PartFailed("metrics", 3), OSError(11, "no process left"), ConfigError("x.yaml: no"), None)
    # When it is kept running, Then it is started again, and operators are told why it was not
    async with kept(parts, monkeypatch, on_death=lambda name, why: heard.append(why)) as keeping:
        assert keeping.child is not None
    could_not = [f"it could not be started: {why}" for why in ("[Errno 11] no process left", "x.yaml: no")]
    assert heard == ["exit status 1", "exit status 3", *could_not]
    # And only what nobody foresaw has a traceback
    assert [record.exc_info[0] for record in caplog.records if record.exc_info] == [BlockingIOError]


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


async def test_a_part_that_drains_gets_what_it_was_told_and_a_margin(
    idle: type[Idle], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a part whose drain may take five minutes
    waits: list[float] = []

    async def stop(child: Child, grace: float) -> int:
        waits.append(grace)
        return 0

    keeping = KeptProcess("metrics", lambda: replace(SETTINGS, grace=300.0))
    await keeping.start()
    assert [each["grace"] for each in idle.told] == [300.0]
    with monkeypatch.context() as patched:
        patched.setattr(processes, "stop", stop)
        # When it is drained by who waits for as long as it takes, and by who does not
        await keeping.drain(math.inf)
        await keeping.drain(5.0)
    # Then it is not killed before it had its last words: a worker's take 4 s, and a node closes in order within 8
    assert waits == [300.0 + MARGIN, 5.0] and MARGIN > 8.0
    await keeping.stop()


@pytest.mark.parametrize(
    ("settings", "todo"),
    [
        (SETTINGS, "may say why$"),
        (WorkerSettings(modules=("a",), schedulers=("s",)), "raise load_limit in worker.yaml"),
    ],
    ids=["any", "worker"],
)
async def test_a_part_that_is_not_ready_in_time_is_no_part_that_was_killed(
    idle: type[Idle], monkeypatch: pytest.MonkeyPatch, settings: PartSettings, todo: str
) -> None:
    # Given a part that never says that it is ready
    monkeypatch.setattr(idle, "ready", False)
    monkeypatch.setattr(type(settings), "ready_within", 0.01)
    # When it is started, Then what is told is that, not the status that killing it gave
    with pytest.raises(PartFailed, match=rf"could not be started: it was not ready within 0.01 s; .*{todo}") as failed:
        await processes.spawn(settings)
    assert failed.value.code is None


def test_a_worker_that_runs_alone_drains_for_as_long_as_its_file_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given the file of a worker
    (tmp_path / "worker.yaml").write_text("grace: 5m\n")
    drains: list[float] = []

    def run(part: object, started: object, grace: float) -> int:
        drains.append(grace)
        return 0

    monkeypatch.setattr("tailrace.runtime.guard_handle.under_guard", lambda: None)
    monkeypatch.setattr(WorkerSettings, "build", lambda self, guard: None)
    monkeypatch.setattr(foreground, "enter", lambda name, directory: None)
    monkeypatch.setattr(foreground, "loading", contextlib.nullcontext)
    monkeypatch.setattr(foreground.telemetry, "set_up", lambda name: None)
    monkeypatch.setattr(foreground, "_run", run)
    # When it runs, Then its drain takes what that says
    assert foreground.run_part(WorkerSettings(config=tmp_path, modules=("a",), schedulers=("s",))) == 0
    assert drains == [300.0]


def test_who_cannot_be_told_what_parts_do_stops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    # Given a standard error whose reader has gone
    def gone(*_: object) -> None:
        raise BrokenPipeError("standard error is gone")

    monkeypatch.setattr("sys.stderr", SimpleNamespace(write=gone, flush=gone))
    # When it is told something, Then nothing is raised
    foreground._sayer(False)("node", "died", "exit status 1")
