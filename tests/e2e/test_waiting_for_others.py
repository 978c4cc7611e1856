"""Functions that submit others and wait for them, in pools that they could fill."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import pytest_asyncio

import tailrace
from tailrace.assembly.platform import Platform
from tailrace.model.limits import Quota
from tailrace.wire.gateway import GatewayClient

FUNCTIONS = str(Path(__file__).parent / "parent_functions.py")
WORKER = {"executors": 1, "slots": 4, "threads": 4, "isolated": 1, "waiting": 8}

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def client(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tailrace.AsyncClient]:
    """A client of a platform of four slots and four threads."""
    folder = tmp_path_factory.mktemp("parents")
    address = folder / "gateway"
    environment = {"TAILRACE_TEST_GATEWAY": str(address)}
    platform = Platform(folder / "data", [FUNCTIONS], heartbeat=0.5, environment=environment, worker=WORKER)
    try:
        await platform.start()
        address.write_text(platform.gateway_address)
        async with tailrace.AsyncClient(platform.gateway_address) as running:
            yield running
    finally:
        await platform.stop()


@pytest.mark.parametrize("name", ["parent", "parent_plain"])
async def test_as_many_parents_as_slots_wait_for_children_of_the_same_pool(
    client: tailrace.AsyncClient, name: str
) -> None:
    # When each slot has a parent, and each of them waits for a child that needs a slot
    handles = [await client.submit(name, n=number) for number in range(4)]
    # Then all of them end
    assert await asyncio.gather(*(handle.result(timeout=40) for handle in handles)) == [1, 3, 5, 7]


async def test_a_flood_of_parents_spends_no_attempt(client: tailrace.AsyncClient, tmp_path: Path) -> None:
    # When far more parents come than may wait, and each of their children takes a while
    note, count = tmp_path / "note", 100
    calls = [tailrace.Call("parent_noted", n=number, note=str(note)) for number in range(count)]
    handles = await client.submit_many(calls)
    # Then all of them end well, none failed, and hardly one began in vain
    assert await asyncio.gather(*(handle.result(timeout=100) for handle in handles)) == [
        number * 2 + 1 for number in range(count)
    ]
    statuses = await client.status_many([handle.id for handle in handles])
    assert {status.attempts for status in statuses if status is not None} == {0}
    began = len(note.read_text().splitlines())
    assert began <= count * 1.5, began


async def test_several_waits_of_one_run_count_once(client: tailrace.AsyncClient) -> None:
    handles = [await client.submit("parent_of_several", n=20) for _ in range(4)]
    expected = [number * 2 for number in range(20)]
    assert await asyncio.gather(*(handle.result(timeout=60) for handle in handles)) == [expected] * 4


async def test_a_run_may_wait_for_its_own_function_as_deep_as_waiting_allows(client: tailrace.AsyncClient) -> None:
    # Given eight that may wait
    assert await (await client.submit("descends", depth=8)).result(timeout=60) == 8
    # When a ninth would, then it is refused and says what to do, and those above it hear why
    with pytest.raises(tailrace.WorkloadFailed, match="raise `waiting` in the worker's configuration"):
        await (await client.submit("descends", depth=9)).result(timeout=60)
    # And nothing of it stays counted
    assert await (await client.submit("descends", depth=8)).result(timeout=60) == 8


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("blocks_its_loop", "await result\\(\\) of an AsyncClient"),
        ("parent_in_process", "cannot wait for other work: with isolation='process'"),
    ],
)
async def test_what_cannot_wait_is_told_so_at_once(client: tailrace.AsyncClient, name: str, reason: str) -> None:
    with pytest.raises(tailrace.WorkloadFailed, match=reason):
        await (await client.submit(name, n=1)).result(timeout=20)


@pytest.mark.parametrize("name", ["parent_of_late", "parent_of_late_plain"])
async def test_what_only_waits_is_no_suspect_and_spends_no_attempt(
    client: tailrace.AsyncClient, tmp_path: Path, name: str
) -> None:
    # Given a run that waits for other work
    note = tmp_path / "note"
    handle = await client.submit(name, note=str(note), after="4s")
    await _until(note.exists)
    # When another run ends the process of both
    with pytest.raises(tailrace.WorkloadFailed, match="exited with code 3"):
        await (await client.submit("ends_its_process")).result(timeout=30)
    # Then it runs again, as the same attempt and without a crash counted
    assert await handle.result(timeout=40) == [1, 0]
    assert note.read_text() == "1\n1\n"


@pytest.mark.parametrize("name", ["parent_of_late", "parent_of_late_plain"])
async def test_one_that_waits_is_cancelled_at_once(client: tailrace.AsyncClient, tmp_path: Path, name: str) -> None:
    note = tmp_path / "note"
    handle = await client.submit(name, note=str(note), after="1h")
    await _until(note.exists)
    assert await handle.cancel() == "requested"
    with pytest.raises(tailrace.WorkloadFailed, match="cancelled"):
        await handle.result(timeout=20)


async def test_a_function_of_which_one_may_run_at_once_waits_for_itself(client: tailrace.AsyncClient) -> None:
    async with GatewayClient(client.gateway) as operator:
        await operator.set_quota(Quota("descends", concurrency=1))
        try:
            assert await (await client.submit("descends", depth=5)).result(timeout=60) == 5
        finally:
            await operator.set_quota(Quota("descends"))


@pytest.mark.parametrize("name", ["parent_of_late", "parent_of_late_plain"])
async def test_a_drain_hands_back_what_waits_and_charges_nothing(tmp_path: Path, name: str) -> None:
    # Given a run that waits for what comes late
    note, address = tmp_path / "note", tmp_path / "gateway"
    environment = {"TAILRACE_TEST_GATEWAY": str(address)}
    running = Platform(tmp_path / "data", [FUNCTIONS], heartbeat=0.5, environment=environment, worker=WORKER)
    try:
        await running.start()
        address.write_text(running.gateway_address)
        async with tailrace.AsyncClient(running.gateway_address) as client:
            id = (await client.submit(name, note=str(note), after="1h")).id
            await _until(note.exists)
        # When the platform is told to end, with much more time than it takes
        began = time.monotonic()
        await running.drain(60)
        assert time.monotonic() - began < 30
    finally:
        await running.stop()
    # Then the next one runs it again, as its first attempt
    again = Platform(tmp_path / "data", [FUNCTIONS], heartbeat=0.5, environment=environment, worker=WORKER)
    try:
        await again.start()
        address.write_text(again.gateway_address)
        await _until(lambda: note.read_text() == "1\n1\n")
        async with tailrace.AsyncClient(again.gateway_address) as client:
            assert (await client.status(id)).attempts == 0
    finally:
        await again.stop()


async def _until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(40):
        while not true():
            await asyncio.sleep(0.02)


async def test_a_wait_without_a_limit_has_that_of_its_run(client: tailrace.AsyncClient) -> None:
    with pytest.raises(tailrace.WorkloadFailed, match=r"timed out after 1s|has not ended within"):
        await (await client.submit("waits_without_end")).result(timeout=20)
