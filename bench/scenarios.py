"""The scenarios of `tailrace bench`: real processes, the platform as a user would start it, a few figures each."""

from __future__ import annotations

import asyncio
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import NamedTuple

import tailrace

from ..assembly.embedded import EmbeddedStores
from ..assembly.platform import Platform
from ..assembly.settings import ConfigDirectory
from ..stores.config import StoresConfig
from ..stores.log.log import Record
from ..stores.remote import RemoteLog
from ..wire.gateway import GatewayClient
from .figures import Figures, Progress
from .functions import starts
from .percentiles import percentile
from .process import context_switches, cpu_by_name, cpu_seconds, descendants, resident_bytes
from .workload import START_TAILER, STREAM, TENANTS, items, records, write_tailer

FUNCTIONS = "tailrace.bench.functions"
#: Items sent before a measurement of latencies begins: a second's worth.
WARM_UP = 200


class Crowd(NamedTuple):
    """Functions and tenants whose no-op items run: the module of the functions, and the number of each."""

    module: str
    functions: int
    tenants: int


#: The crowds of `stream` and of `queue`.
STREAMED, QUEUED = Crowd(FUNCTIONS, 200, TENANTS), Crowd(FUNCTIONS, 20, TENANTS)


async def stream(
    folder: Path, count: int, progress: Progress, config: Path | None = None, crowd: Crowd = STREAMED
) -> Figures:
    """Runs records in the embedded log, 200 functions × 50 tenants → no-op functions, settled."""
    async with EmbeddedStores(folder / "data", ConfigDirectory(config).read("stores.yaml", StoresConfig)) as stores:
        for number, batch in enumerate(records(count, functions=crowd.functions, tenants=crowd.tenants)):
            await stores.log.append(STREAM, 0, batch)
            progress("filling the log", number * 256 / count)
    platform = Platform(folder / "data", [crowd.module], config, tailers=[write_tailer(folder)])

    async def settled(gateway: GatewayClient) -> int:
        overview = await gateway.overview()
        return sum(tailer.settled for tailer in overview.tailers if tailer.name == "bench")

    return await throughput(platform, settled, count, progress)


async def queue(
    folder: Path,
    count: int,
    progress: Progress,
    config: Path | None = None,
    server: int | None = None,
    crowd: Crowd = QUEUED,
) -> Figures:
    """Runs items in the durable queue, enqueued before, 20 functions × 50 tenants → no-op functions, acknowledged. With
    the `server` process of the queue it also measures that server's CPU by item."""
    async with EmbeddedStores(folder / "data", ConfigDirectory(config).read("stores.yaml", StoresConfig)) as stores:
        for number, batch in enumerate(items(count, functions=crowd.functions, tenants=crowd.tenants)):
            await stores.queue.submit(batch)
            progress("filling the queue", number * 256 / count)
    platform = Platform(folder / "data", [crowd.module], config)

    async def settled(gateway: GatewayClient) -> int:
        return (await gateway.overview()).queue.get("success", 0)

    return await throughput(platform, settled, count, progress, server=server)


async def throughput(
    platform: Platform,
    settled: Callable[[GatewayClient], Coroutine[object, object, int]],
    count: int,
    progress: Progress,
    over: Callable[[], Coroutine[object, object, None]] | None = None,
    server: int | None = None,
) -> Figures:
    """Measures items settled per second, from the first look that shows any to the last item; where that look shows all
    of them, from the look before it. The platform runs on until `over` returns."""
    await platform.start()
    try:
        processes = platform.pids() | ({} if server is None else {"server": server})
        cpu_before = cpu_by_name(processes)
        async with GatewayClient(platform.gateway_address) as gateway:
            began, first, done = time.perf_counter(), 0, 0
            while done < count:
                await asyncio.sleep(0.02)
                done = await settled(gateway)
                now = time.perf_counter()
                progress("running", done / count)
                if not first and done < count:
                    began, first = now, done
        cpu_after = cpu_by_name(processes)
        cpu = {name: cpu_after[name] - cpu_before[name] for name in cpu_before}
        if over is not None:
            await over()
    finally:
        await platform.stop()
    seconds = now - began
    figures = {"items": float(count), "seconds": seconds, "items_per_s": (count - first) / seconds}
    return figures | {f"{name}_cpu_us_per_item": round(1e6 * used / count, 2) for name, used in cpu.items()}


async def latency(folder: Path, seconds: float, progress: Progress, config: Path | None = None) -> Figures:
    """Makes 200 submissions a second, submit → start; then 200 appends a second, append → start. With a configuration,
    submissions alone: then the log is not the subject."""
    starts_file = folder / "starts"
    platform = Platform(
        folder / "data",
        [FUNCTIONS],
        config,
        tailers=[write_tailer(folder, START_TAILER)],
        environment={"TAILRACE_BENCH_STARTS": str(starts_file)},
    )
    await platform.start()
    try:
        async with tailrace.AsyncClient(platform.gateway_address) as client:

            async def submit(due: float) -> None:
                await client.submit("bench_start", sent=due)

            before = work_of(platform)
            queued = await paced(submit, seconds, starts_file, progress, "queue")
            work = each_item("", before, work_of(platform), WARM_UP + len(queued))
        figures = {
            "rate_per_s": 200.0,
            "p50_ms": 1e3 * percentile(queued, 0.5),
            "p99_ms": 1e3 * percentile(queued, 0.99),
        }
        if config is not None:
            return figures | work
        async with RemoteLog(platform.store_address) as log:

            async def append(due: float) -> None:
                await log.append("starts", 0, [Record(f'{{"sent": {due!r}}}'.encode())])

            before = work_of(platform)
            logged = await paced(append, seconds, starts_file, progress, "log")
            work |= each_item("log_", before, work_of(platform), WARM_UP + len(logged))
    finally:
        await platform.stop()
    return {
        **figures,
        "log_p50_ms": 1e3 * percentile(logged, 0.5),
        "log_p99_ms": 1e3 * percentile(logged, 0.99),
        **work,
    }


def work_of(platform: Platform) -> dict[str, tuple[float, int]]:
    """CPU seconds and context switches of each process so far, with the client's (this one)."""
    pids = {"client": [os.getpid()]}
    for name, pid in platform.pids().items():
        own, *executors = descendants(pid)
        pids[name] = [own]
        if name == "worker":
            pids["executors"] = executors
    return {name: (sum(map(cpu_seconds, each)), sum(map(context_switches, each))) for name, each in pids.items()}


def each_item(
    prefix: str, before: dict[str, tuple[float, int]], after: dict[str, tuple[float, int]], items: int
) -> Figures:
    """CPU and context switches of each process by item."""
    figures: Figures = {}
    for name, (cpu, switches) in after.items():
        figures[f"{prefix}{name}_cpu_us_per_item"] = round(1e6 * (cpu - before[name][0]) / items, 1)
        figures[f"{prefix}{name}_switches_per_item"] = round((switches - before[name][1]) / items, 1)
    return figures


async def paced(
    send: Callable[[float], Coroutine[object, object, None]],
    seconds: float,
    starts_file: Path,
    progress: Progress,
    what: str,
) -> list[float]:
    """Sends 200 a second for so long, after a warm-up of one second. Returns the measured latencies. Each is sent with
    the time (monotonic) at which it was due to be sent, and waits from then on: a sender that is held up would
    otherwise leave out the waits that it causes."""
    running: set[asyncio.Task[None]] = set()
    count = WARM_UP + int(200 * seconds)
    starts_file.unlink(missing_ok=True)
    began = time.monotonic() + 0.05
    for number in range(count):
        due = began + number / 200
        await asyncio.sleep(max(0.0, due - time.monotonic()))
        task = asyncio.create_task(send(due))
        running.add(task)
        task.add_done_callback(running.discard)
        if number % 20 == 0:  # a drawn line takes as long as a submission
            progress(f"measuring the {what}", number / count)
    await asyncio.gather(*running)
    deadline = time.perf_counter() + 30
    while len(starts(starts_file)) < count and time.perf_counter() < deadline:
        await asyncio.sleep(0.1)
    found = starts(starts_file)
    if len(found) < count:
        raise tailrace.TailraceError(f"only {len(found)} of {count} workloads started within 30 s")
    return found[WARM_UP:]


async def memory(folder: Path, count: int, progress: Progress) -> Figures:
    """Measures resident memory of node and scheduler with `count` items waiting in the queue and as many in the log."""
    figures: Figures = {"items": float(count)}
    for label, waiting in (("empty", 0), ("full", count)):
        data = folder / label
        async with EmbeddedStores(data) as stores:
            for number, batch in enumerate(items(waiting, functions=20)):
                await stores.queue.submit(batch)
                progress("filling the queue", number * 256 / count)
            for number, records_batch in enumerate(records(waiting)):
                await stores.log.append(STREAM, 0, records_batch)
                progress("filling the log", number * 256 / count)
        platform = Platform(data, ["tailrace.bench.slow_functions"], tailers=[write_tailer(folder)])
        await platform.start()
        try:
            await asyncio.sleep(10)
            pids = platform.pids()
            prefix = "" if label == "full" else "empty_"
            figures[f"{prefix}node_mb"] = resident_bytes(pids["node"]) / 1e6
            figures[f"{prefix}scheduler_mb"] = resident_bytes(pids["scheduler"]) / 1e6
        finally:
            await platform.stop()
    return figures


async def idle(folder: Path, seconds: float, progress: Progress) -> Figures:
    """Measures CPU of an idle platform, all its processes together, and the time to import the SDK."""
    platform = Platform(folder / "data", [FUNCTIONS])
    await platform.start()
    try:
        await asyncio.sleep(2)
        before = cpu_by_name(platform.pids())
        progress("idling", 0.1)
        await asyncio.sleep(seconds)
        after = cpu_by_name(platform.pids())
    finally:
        await platform.stop()
    used = sum(after[name] - before[name] for name in before)
    return {"idle_cpu_percent": 100 * used / seconds, "import_ms": 1e3 * _import_seconds()}


def _import_seconds() -> float:
    """Seconds that `import tailrace` adds to starting Python: the median of five."""

    def timed(code: str) -> float:
        began = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True)
        return time.perf_counter() - began

    return statistics.median(timed("import tailrace") - timed("pass") for _ in range(5))
