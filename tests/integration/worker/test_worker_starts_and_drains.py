"""Workers that do not start say why; workers that drain finish all runs and leave no process."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from tailrace.assembly.processes import stop
from tailrace.model.errors import UserError
from tailrace.model.lease import LeaseSizes
from tailrace.model.outcome import Outcome
from tailrace.runtime.config import WorkerConfig
from tailrace.runtime.worker import Worker


async def test_draining_finishes_what_runs_and_hands_back_what_waits(start: Any, journal: Any) -> None:
    scheduler, worker = await start(slots=2)
    running = scheduler.assign("waits", *[{"journal": journal.name, "name": "n"}] * 2)
    await journal.until("start n", 2)
    buffered = scheduler.assign("add", *[{"a": 1}] * 5)
    late = scheduler.assign("add", {"a": 1})
    drain = asyncio.create_task(worker.drain(20))
    assert {end.outcome for end in await scheduler.ended(*buffered, *late)} == {Outcome.HELD}
    assert scheduler.draining
    journal.go()
    assert {end.outcome for end in await scheduler.ended(*running)} == {Outcome.SUCCESS}
    await drain
    assert not worker.executor_pids


async def test_what_runs_on_after_the_grace_is_lost_without_an_attempt(start: Any, journal: Any) -> None:
    scheduler, worker = await start(pools=True)
    arguments = {"journal": journal.name, "name": "n"}
    refs = scheduler.assign("waits", arguments) + scheduler.assign("waits_plain", arguments)
    stuck = scheduler.assign("stuck_alone", {"journal": journal.name})
    await asyncio.gather(journal.until("start n", 2), journal.until("start"))
    await worker.drain(0.1)
    for end in await scheduler.ended(*refs[:1], *stuck):
        assert (end.outcome, end.crashed) == (Outcome.LOST, False)
    assert not worker.executor_pids


async def test_a_worker_that_is_told_to_end_gives_what_runs_the_grace_that_is_configured(
    apart: Any, journal: Any
) -> None:
    # Given a worker, as a process, whose runs get a moment when it ends, and something that runs
    scheduler, child = await apart(grace=0.2)
    running = scheduler.assign("waits", {"journal": journal.name, "name": "n"})
    await journal.until("start n")
    # When it is told to end, Then it does so by itself, long before the usual 30 s
    assert await stop(child, 20.0) == 0
    # And what ran is lost, without an attempt
    assert [(end.outcome, end.crashed) for end in await scheduler.ended(*running)] == [(Outcome.LOST, False)]


async def test_executors_do_not_outlive_their_worker(start: Any) -> None:
    _, worker = await start()
    pids = worker.executor_pids
    await worker.stop()
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


@pytest.mark.parametrize("answers", [True, False])
async def test_a_worker_is_ready_once_the_gateway_knows_its_functions_or_does_not_answer(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *, answers: bool
) -> None:
    asked, answer = asyncio.Event(), asyncio.Event()

    async def register(*_: Any) -> None:
        asked.set()
        await answer.wait()

    monkeypatch.setattr("tailrace.runtime.worker.register", register)
    source = tmp_path / "one.py"
    source.write_text("from tailrace.sdk.function import function\n@function\nasync def work(): ...\n")
    within = 60.0 if answers else 0.01
    worker = Worker(
        WorkerConfig(executors=1), [str(source)], ["127.0.0.1:1"], "g", LeaseSizes(), registered_within=within
    )
    starting = asyncio.create_task(worker.start())
    await asked.wait()
    if answers:  # and until then it is not ready
        assert not starting.done()
        answer.set()
    await starting
    await worker.stop()


async def test_functions_that_cannot_be_loaded_in_an_executor_fail_the_start(tmp_path: Path) -> None:
    source = tmp_path / "only_here.py"
    source.write_text(
        "import os\nfrom tailrace.sdk.function import function\n"
        f"if os.getpid() != {os.getpid()}: os._exit(9)\n"
        "@function\nasync def work(): ...\n"
    )
    worker = Worker(WorkerConfig(executors=1), [str(source)], ["127.0.0.1:1"], None, LeaseSizes())
    with pytest.raises(UserError, match="exited with code 9 while it loaded"):
        await worker.start()
    await worker.stop()


async def test_functions_that_never_finish_loading_fail_the_start(tmp_path: Path) -> None:
    """Given a module whose import hangs in the executor, When the worker starts, Then it says so after the limit."""
    source = tmp_path / "hangs_here.py"
    source.write_text(
        "import os, threading\nfrom tailrace.sdk.function import function\n"
        f"if os.getpid() != {os.getpid()}: threading.Event().wait()\n"
        "@function\nasync def work(): ...\n"
    )
    worker = Worker(WorkerConfig(executors=1, load_limit=1.0), [str(source)], ["127.0.0.1:1"], None, LeaseSizes())
    with pytest.raises(UserError, match=r"did not load within 1 s.*load_limit"):
        await worker.start()
    await worker.stop()
