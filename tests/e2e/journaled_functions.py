"""Functions that write a journal of their own, which the tests believe rather than the platform's counters.

One line for each thing that happens, each a single O_APPEND write:
`start|tick|end|fail <id> <fence> <attempt> <CLOCK_MONOTONIC> <pid>`.
"""

from __future__ import annotations

import asyncio
import os
import time

import tailrace

JOURNAL = os.environ.get("TAILRACE_TEST_JOURNAL", "")


def note(word: str, ctx: tailrace.Context) -> None:
    line = f"{word} {ctx.id} {ctx.fence} {ctx.attempt} {time.monotonic():.6f} {os.getpid()}\n"
    descriptor = os.open(JOURNAL, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(descriptor, line.encode())
    finally:
        os.close(descriptor)


@tailrace.function(retry=tailrace.Retry(backoff="list", delays=(0.2,), max_attempts=5))
async def work(ctx: tailrace.Context, seconds: float = 0.0, fail_first: int = 0) -> str:
    """Runs for `seconds`, and fails its first `fail_first` attempts."""
    note("start", ctx)
    await asyncio.sleep(seconds)
    if ctx.attempt <= fail_first:
        note("fail", ctx)
        raise RuntimeError(f"attempt {ctx.attempt} fails as asked")
    note("end", ctx)
    return f"done {ctx.id}"


@tailrace.function(retry=tailrace.Retry(max_crashes=50))
async def steady(ctx: tailrace.Context, ticks: int = 20) -> None:
    """Says every 10 ms that it is still running, so that an execution that outlives its lease is seen."""
    note("start", ctx)
    for _ in range(ticks):
        await asyncio.sleep(0.01)
        note("tick", ctx)
    note("end", ctx)


@tailrace.function
async def measure(path: str, name: str, size: int, modified: float) -> str:
    """Takes the arguments that a directory tailer hands over."""
    return f"{name} {size}"


@tailrace.function
async def add(a: int, b: int) -> int:
    return a + b


@tailrace.function
def add_in_thread(a: int, b: int) -> int:
    return a + b


@tailrace.function(isolation="process")
def add_in_process(a: int, b: int) -> int:
    return a + b


@tailrace.function
async def never_again(why: str) -> None:
    raise tailrace.Fatal(why)


@tailrace.function(retry=tailrace.Retry(max_attempts=2, backoff="list", delays=(0.1,)))
async def always_fails() -> None:
    raise ValueError("it always fails")


@tailrace.function
async def throttled_once(ctx: tailrace.Context) -> int:
    """Is throttled until a marker file exists; the attempt number shows that no attempt was spent."""
    marker = f"{JOURNAL}.throttled.{ctx.id}"
    if not os.path.exists(marker):
        with open(marker, "w"):
            pass
        raise tailrace.Throttled(downstream="catalogue", retry_after=0.2)
    return ctx.attempt


@tailrace.function(retry=tailrace.Retry(max_crashes=2))
async def kills_its_process() -> None:
    os._exit(7)


@tailrace.function(timeout="300ms", retry=tailrace.Retry(max_attempts=1))
async def never_returns() -> None:
    await asyncio.Event().wait()


@tailrace.function
async def not_serialisable() -> object:
    return object()


@tailrace.function
async def takes_long(ctx: tailrace.Context) -> None:
    note("start", ctx)
    await asyncio.sleep(30)
    note("end", ctx)
