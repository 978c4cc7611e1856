"""The functions that run while faults are done. Each notes its start and end in the journal of its process.

Delays and limits are short, so that a run of minutes holds many of them.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import subprocess
import time
from pathlib import Path

from ...model.errors import Fatal, RetryLater, Throttled
from ...model.retry import Retry
from ...sdk.context import Context
from ...sdk.function import function
from .child import TICK_EVERY, command
from .journal import CRASH, FATAL, RETRY, START, SUCCESS, THROTTLED, TICK, FaultJournal

#: The variable with the folder of the journals; set by the scenario.
FOLDER_VARIABLE = "TAILRACE_BENCH_JOURNAL"
#: The retry policy of items that survive any number of processes killed under them.
PATIENT = Retry(max_attempts=1000, backoff="list", delays=(0.2,), max_crashes=100)

_FOLDER = Path(os.environ.get(FOLDER_VARIABLE, "."))
_JOURNAL = FaultJournal(_FOLDER)
#: While this file is there, everything fails.
OUTAGE = "outage"


def _fail_in_an_outage(ctx: Context) -> None:
    if (_FOLDER / OUTAGE).exists():
        _note(RETRY, ctx, time.monotonic() + 0.2)
        raise ConnectionError("everything fails")


def _note(word: str, ctx: Context, until: float = 0.0) -> None:
    _JOURNAL.write(word, ctx.id, ctx.fence, ctx.attempt, until)


def _tick(ctx: Context, seconds: float) -> None:
    """Writes signs of life for so long, in a function that blocks."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        time.sleep(min(TICK_EVERY, left))
        if left > TICK_EVERY:
            _note(TICK, ctx)


@function(retry=PATIENT)
async def work(
    ctx: Context,
    seconds: float = 0.0,
    fails: int = 0,
    delay: float = 0.2,
    dies: bool = False,
    throttles: bool = False,
) -> None:
    """Waits for so long, with signs of life; fails its first attempts if asked to, each with that delay, and then
    succeeds or fails for good. Throttled: about every other time.

    One function does all this, since one that always fails is an outage, and would be clogged (law 7)."""
    _note(START, ctx)
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        await asyncio.sleep(min(TICK_EVERY, left))
        if left > TICK_EVERY:
            _note(TICK, ctx)
    _fail_in_an_outage(ctx)
    if ctx.attempt <= fails:
        _note(RETRY, ctx, time.monotonic() + delay)
        raise RetryLater("as planned", after=delay)
    if dies:
        _note(FATAL, ctx)
        raise Fatal("as planned")
    if throttles and ctx.fence % 2:
        _note(THROTTLED, ctx)
        raise Throttled(downstream="nobody", retry_after=0.3)
    _note(SUCCESS, ctx)


@function(retry=PATIENT)
def threaded(ctx: Context, seconds: float = 0.0) -> None:
    """Waits for so long with signs of life, in a thread."""
    _note(START, ctx)
    _tick(ctx, seconds)
    _fail_in_an_outage(ctx)
    _note(SUCCESS, ctx)


@function(retry=PATIENT, isolation="process")
def isolated(ctx: Context, seconds: float = 0.0) -> None:
    """Waits for so long with signs of life, in a process of its own."""
    _note(START, ctx)
    _tick(ctx, seconds)
    _note(SUCCESS, ctx)


@function(retry=PATIENT)
def parent(ctx: Context, seconds: float = 0.0) -> None:
    """Starts a process that gives signs of life for so long, and waits for it."""
    _note(START, ctx)
    run = os.getpid(), os.getppid()
    try:
        subprocess.run(command(_FOLDER, ctx.id, ctx.fence, ctx.attempt, run, seconds), check=True, capture_output=True)
    except (OSError, MemoryError, subprocess.SubprocessError) as error:  # there may be no memory for one just now
        _note(RETRY, ctx, time.monotonic() + 0.2)
        raise RetryLater(f"the child: {error}", after=0.2) from error
    _fail_in_an_outage(ctx)
    _note(SUCCESS, ctx)


@function(retry=Retry(max_attempts=1000, backoff="list", delays=(0.2,), max_crashes=4))
async def killer(ctx: Context, spares: bool = False) -> None:
    """Ends its process whenever it runs, so that it is a dead letter after a few, unless it `spares` the process. If
    all items did, the function would be broken, and its items held instead."""
    _note(START, ctx)
    await asyncio.sleep(0.05)
    if spares:
        _note(SUCCESS, ctx)
        return
    _note(CRASH, ctx)
    os._exit(7)


@function(retry=PATIENT)
async def exits_once(ctx: Context) -> None:
    """Ends its process, unless one died under it already."""
    _note(START, ctx)
    await asyncio.sleep(0.05)
    if not ctx.crashes:
        _note(CRASH, ctx)
        os._exit(7)
    _note(SUCCESS, ctx)


@function(retry=PATIENT)
async def keeps_the_lock_once(ctx: Context, seconds: int) -> None:
    """Keeps the interpreter lock for longer than a lease, unless its process was ended for that already."""
    _note(START, ctx)
    await asyncio.sleep(0.05)
    if not ctx.crashes:
        _note(CRASH, ctx)
        ctypes.PyDLL(None).sleep(seconds)
    _note(SUCCESS, ctx)


@function(retry=PATIENT)
def hungry(ctx: Context, megabytes: int) -> None:
    """Asks for more memory than its process may have, on its first attempt."""
    _note(START, ctx)
    if ctx.attempt == 1:
        try:
            bytearray(megabytes << 20)
        except MemoryError:
            _note(RETRY, ctx, time.monotonic() + 0.2)
            raise
    _note(SUCCESS, ctx)
