"""The whole path with every process real: from submission to outcome, and from a source to its checkpoint."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

import tailrace
from tailrace.assembly import parts
from tailrace.assembly.platform import Platform
from tailrace.assembly.processes import Child, spawn, stop

FUNCTIONS = str(Path(__file__).parent / "journaled_functions.py")


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("journal") / "journal"


class Apart:
    """A platform of single processes: stores, gateway, delay service, scheduler, tailer, worker."""

    def __init__(self, folder: Path, journal: Path) -> None:
        self._folder = folder
        self._journal = journal
        self._children: list[Child] = []
        self.gateway_address = ""

    async def start(self) -> None:
        tailer = self._folder / "queue.yaml"
        tailer.write_text("name: queue\nsource: {kind: queue}\nresults: true\n")
        anywhere, beat = "127.0.0.1:0", 0.5
        store = await self._spawn(parts.StoreSettings(data=self._folder / "data", listen=anywhere, heartbeat=beat))
        gateway = await self._spawn(parts.GatewaySettings(store=store, listen=anywhere, heartbeat=beat))
        delay = await self._spawn(parts.DelaySettings(store=store, listen=anywhere, heartbeat=beat))
        scheduler = await self._spawn(parts.SchedulerSettings(gateway=gateway, listen=anywhere, heartbeat=beat))
        await self._spawn(
            parts.TailersSettings(files=(tailer,), scheduler=scheduler, delay=delay, store=store, heartbeat=beat)
        )
        await self._spawn(
            parts.WorkerSettings(modules=(FUNCTIONS,), schedulers=(scheduler,), gateway=gateway, heartbeat=beat)
        )
        self.gateway_address = gateway

    async def _spawn(self, settings: parts.PartSettings) -> str:
        child = await spawn(settings, {"TAILRACE_TEST_JOURNAL": str(self._journal)})
        self._children.append(child)
        return str(child.ready["address"])

    async def drain(self, timeout: float) -> None:
        for child in reversed(self._children):
            assert await stop(child, timeout) == 0, f"the {child.name} did not drain"

    async def stop(self) -> None:
        for child in reversed(self._children):
            await stop(child, 0)


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=["together", "apart"])
async def platform(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, journal: Path
) -> AsyncIterator[Platform | Apart]:
    folder = tmp_path_factory.mktemp("platform")
    running = (
        Platform(folder / "data", [FUNCTIONS], heartbeat=0.5, environment={"TAILRACE_TEST_JOURNAL": str(journal)})
        if request.param == "together"
        else Apart(folder, journal)
    )
    try:
        await running.start()
        yield running
        await running.drain(10)
    finally:
        await running.stop()


@pytest_asyncio.fixture(loop_scope="module")
async def client(platform: Platform | Apart) -> AsyncIterator[tailrace.AsyncClient]:
    async with tailrace.AsyncClient(platform.gateway_address) as running:
        yield running


pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.mark.parametrize("name", ["add", "add_in_thread", "add_in_process"])
async def test_a_submitted_workload_runs_and_its_result_comes_back(client: tailrace.AsyncClient, name: str) -> None:
    handle = await client.submit(name, a=2, b=3)
    assert await handle.result(timeout=30) == 5
    assert (await handle.status()).state == "success"


async def test_a_failing_workload_is_tried_again_until_it_succeeds(client: tailrace.AsyncClient) -> None:
    handle = await client.submit("work", fail_first=2)
    assert await handle.result(timeout=30) == f"done {handle.id}"
    assert (await handle.status()).attempts == 2


async def test_a_fatal_workload_becomes_a_dead_letter_with_its_reason(client: tailrace.AsyncClient) -> None:
    handle = await client.submit("never_again", why="the address does not exist")
    with pytest.raises(tailrace.WorkloadFailed, match="the address does not exist"):
        await handle.result(timeout=30)
    assert (await handle.status()).state == "fatal_failure"


async def test_attempts_that_run_out_end_in_a_dead_letter(client: tailrace.AsyncClient) -> None:
    handle = await client.submit("always_fails")
    with pytest.raises(tailrace.WorkloadFailed, match="it always fails"):
        await handle.result(timeout=30)
    assert (await handle.status()).attempts == 2


async def test_a_throttled_workload_waits_without_spending_an_attempt(client: tailrace.AsyncClient) -> None:
    handle = await client.submit("throttled_once")
    assert await handle.result(timeout=30) == 1


async def test_an_unknown_function_is_refused_with_the_nearest_name(client: tailrace.AsyncClient) -> None:
    with pytest.raises(tailrace.UnknownFunction, match="add_in_thread"):
        await client.submit("add_in_thraed", a=1, b=2)


async def test_a_payload_that_does_not_fit_is_refused_and_says_why(client: tailrace.AsyncClient) -> None:
    with pytest.raises(tailrace.InvalidPayload, match="add: argument 'a': expected a valid integer"):
        await client.submit("add", a="two", b=3)


async def test_a_function_that_exits_the_process_is_a_dead_letter_after_its_crashes(
    client: tailrace.AsyncClient,
) -> None:
    handle = await client.submit("kills_its_process")
    with pytest.raises(tailrace.WorkloadFailed, match="7"):
        await handle.result(timeout=60)
    status = await handle.status()
    assert (status.attempts, status.crashes) == (0, 2)
    other = await client.submit("add", a=1, b=1)
    assert await other.result(timeout=30) == 2


async def test_a_function_that_never_returns_is_bounded_by_its_timeout(client: tailrace.AsyncClient) -> None:
    handle = await client.submit("never_returns")
    with pytest.raises(tailrace.WorkloadFailed, match="timed out"):
        await handle.result(timeout=30)


async def test_a_result_that_cannot_be_serialised_is_fatal(client: tailrace.AsyncClient) -> None:
    handle = await client.submit("not_serialisable")
    with pytest.raises(tailrace.WorkloadFailed, match="seriali"):
        await handle.result(timeout=30)


async def test_a_delayed_workload_never_starts_early(client: tailrace.AsyncClient, journal: Path) -> None:
    before = time.monotonic()
    handle = await client.submit("work", delay="700ms")
    await handle.result(timeout=30)
    started = [line.split() for line in journal.read_text().splitlines() if line.split()[1] == handle.id]
    assert float(started[0][4]) - before >= 0.7


async def test_a_dedupe_key_makes_the_second_submission_the_first_one(client: tailrace.AsyncClient) -> None:
    first = await client.submit("add", a=1, b=1, dedupe_key="only-once")
    second = await client.submit("add", a=1, b=1, dedupe_key="only-once")
    assert first.id == second.id
    assert second.duplicate


async def test_a_running_workload_can_be_cancelled(client: tailrace.AsyncClient, journal: Path) -> None:
    handle = await client.submit("takes_long")
    async with asyncio.timeout(20):
        while not (journal.exists() and f"start {handle.id}" in journal.read_text()):
            await asyncio.sleep(0.05)
    await handle.cancel()
    with pytest.raises(tailrace.WorkloadFailed, match="cancelled"):
        await handle.result(timeout=30)
    assert f"end {handle.id}" not in journal.read_text()


async def test_many_workloads_submitted_at_once_all_end(client: tailrace.AsyncClient) -> None:
    handles = await client.submit_many(
        [tailrace.Call("add", arguments={"a": number, "b": 1}) for number in range(2500)]
    )
    assert len({handle.id for handle in handles}) == 2500
    assert await handles[0].result(timeout=30) == 1
    assert await handles[-1].result(timeout=60) == 2500
