"""A scheduler and a worker as the command line runs them: a failure beyond their own handling makes them anew, at the
address that others know."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tailrace.assembly import parts
from tailrace.assembly.running import Signals, run
from tailrace.assembly.separate import SeparateGateway, SeparateStore
from tailrace.assembly.settings import ConfigDirectory
from tailrace.model.errors import TailraceError
from tailrace.model.outcome import Outcome
from tailrace.runtime.worker import Worker
from tailrace.scheduler.core import Core
from tailrace.wire.gateway import GatewayClient
from tailrace.wire.scheduler import SchedulerClient

FUNCTIONS = "import tailrace\n\n\n@tailrace.function\nasync def add(a: int, b: int = 1) -> int:\n    return a + b\n"


@asynccontextmanager
async def kept(part: Any) -> AsyncIterator[Any]:
    """A part that runs as in a process of its own, and ends in order."""
    signals, ready = Signals(), asyncio.Event()
    running = asyncio.create_task(run(part, started=ready.set, signals=signals, grace=5.0))
    waiting = asyncio.create_task(ready.wait())
    await asyncio.wait({running, waiting}, return_when=asyncio.FIRST_COMPLETED, timeout=60)
    try:
        yield part
    finally:
        waiting.cancel()
        signals.arrived()
        await asyncio.wait_for(running, 30)


@asynccontextmanager
async def gateway_of(folder: Path) -> AsyncIterator[str]:
    """The address of a gateway over stores of its own."""
    stores = SeparateStore(folder / "data", ConfigDirectory(None), "127.0.0.1:0")
    async with AsyncExitStack() as ends:
        ends.push_async_callback(stores.stop)
        await stores.start()
        gateway = SeparateGateway(stores.address, ConfigDirectory(None), "127.0.0.1:0")
        ends.push_async_callback(gateway.stop)
        await gateway.start()
        yield gateway.address


async def runs(client: SchedulerClient) -> None:
    """Executes workloads until one runs: no tailer would hand it out again when its worker was held up for one of these
    short leases."""
    async with asyncio.timeout(60):
        while True:
            try:
                ended = await client.execute("add", b'{"a": 1}', timeout=2)
            except TailraceError:
                await asyncio.sleep(0.02)
                continue
            if ended.outcome in (Outcome.HELD, Outcome.LOST):
                continue
            assert (ended.outcome, ended.result) == (Outcome.SUCCESS, b"2")
            return


@pytest.mark.parametrize("part", ["scheduler", "worker"])
async def test_what_fails_makes_it_anew_and_work_goes_on(
    part: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "reopened_functions.py").write_text(FUNCTIONS)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    # Given a scheduler and a worker, of which one fails as nobody foresaw, once, when it is told to
    planted, failed = asyncio.Event(), asyncio.Event()

    def fail() -> None:
        if planted.is_set() and not failed.is_set():
            failed.set()
            raise ValueError("planted, by a name that is no text: \udcff")

    turn, look = Core.turn, Worker._stop_ending

    def turned(core: Core, now: float, wall: float) -> Any:
        if part == "scheduler":
            fail()
        return turn(core, now, wall)

    def looked(worker: Worker) -> None:
        if part == "worker":
            fail()
        look(worker)

    monkeypatch.setattr(Core, "turn", turned)
    monkeypatch.setattr(Worker, "_stop_ending", looked)
    async with AsyncExitStack() as ends:
        gateway = await ends.enter_async_context(gateway_of(tmp_path))
        operator = await ends.enter_async_context(GatewayClient(gateway))
        listening = parts.SchedulerSettings(listen="127.0.0.1:0", heartbeat=0.2, gateway=gateway)
        scheduler = await ends.enter_async_context(kept(listening.build()))
        address = scheduler.address
        attached = parts.WorkerSettings(
            modules=("reopened_functions",),
            schedulers=(address,),
            heartbeat=0.2,
            gateway=gateway,
            changes={"executors": 1, "slots": 2},
        )
        async with kept(attached.build()) as worker:
            client = SchedulerClient(address)
            await runs(client)
            # When it does
            planted.set()
            async with asyncio.timeout(30):
                await failed.wait()
            # Then work goes on at the same address, and the numbers tell of it
            one = scheduler if part == "scheduler" else worker

            async def again() -> bool:
                found = {sample.metric.name: sample.value for sample in await one.samples()}
                return found["tailrace.part.failures"] == 1

            async with asyncio.timeout(30):
                while not await again():
                    await asyncio.sleep(0.02)
            await runs(client)
            assert scheduler.address == address

            # And operators are told, though it runs apart
            async def told() -> bool:
                alerts = [each for each in (await operator.overview()).alerts if each.code == "part"]
                return any(each.subject.startswith(part) and "planted" in each.what for each in alerts)

            async with asyncio.timeout(30):
                while not await told():
                    await asyncio.sleep(0.02)
            await client.close()
