# ruff: noqa: ASYNC251, B008, PLR0912 - what these functions do wrong is their purpose
"""Functions with good and bad luck, run by real executor processes. They write what they did to a journal file."""

from __future__ import annotations

import asyncio
import contextvars
import ctypes
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import tailrace.sdk.context
from tailrace.model.errors import Fatal, RetryLater, Throttled
from tailrace.sdk.function import function

Context = tailrace.sdk.context.Context
seen = contextvars.ContextVar("seen", default=0)


def write(journal: str, line: str) -> None:
    with Path(journal).open("a") as file:
        file.write(f"{line}\n")


@function
async def add(a: int, b: int = 1) -> int:
    return a + b


@function
async def nothing() -> None: ...


@function
def add_plain(a: int, b: int = 1) -> int:
    return a + b


@function
def nothing_plain() -> None: ...


@function
async def prints(size: int) -> None:
    print("x" * size)


@function
def prints_plain(size: int) -> None:
    print("x" * size, file=sys.stderr)


@function
async def pid() -> int:
    return os.getpid()


def spend(how: str, ctx: Context) -> str | None:
    ctx.used("api", tokens=800)
    ctx.used("api", tokens=12, rows=3)
    if how == "badly":
        ctx.used("api", tokens=float("nan"))
    if how == "raises":
        raise ValueError("after it was used")
    return "told" if how == "returns" else None


@function(downstreams=["api"], timeout=1.0)
async def spends(how: str, ctx: Context) -> str | None:
    if how == "later":
        asyncio.get_running_loop().call_later(0.01, ctx.used, "api")  # nobody listens any more, and it is wrong
    spent = spend(how, ctx)
    if how == "times_out":
        await asyncio.sleep(60)
    return spent


@function(downstreams=["api"])
def spends_plain(how: str, ctx: Context) -> str | None:
    return spend(how, ctx)


@function
async def facts(ctx: Context) -> dict[str, Any]:
    return {
        "id": ctx.id,
        "attempt": ctx.attempt,
        "fence": ctx.fence,
        "collection": ctx.collection,
        "tenant": ctx.tenant,
        "headers": ctx.headers,
        "crashes": ctx.crashes,
        "key": ctx.key,
        "before": ctx.previous_progress,
    }


@function
async def fail(kind: str) -> object:
    match kind:
        case "value":
            raise ValueError("no good")
        case "exit":
            sys.exit(3)
        case "interrupt":
            raise KeyboardInterrupt
        case "generator":
            raise GeneratorExit
        case "base":
            raise BaseException("bare")
        case "cancelled":
            raise asyncio.CancelledError
        case "cancels_itself":
            asyncio.current_task().cancel()  # type: ignore[union-attr]
            return None
        case "later":
            raise RetryLater("not yet", after="5m")
        case "later_badly":
            raise RetryLater("not yet", after="soon")
        case "fatal":
            raise Fatal("never")
        case "throttled":
            raise Throttled(downstream="api", retry_after=3)
        case "object":
            return object()
        case "large":
            return "x" * 2_000_000
        case "text":
            raise _Untellable
        case "long":
            raise ValueError("x" * 1_000_000)
        case "child_exits":
            asyncio.get_running_loop().create_task(_exit())
            await asyncio.sleep(0.05)
    return None


async def _exit() -> None:
    sys.exit(5)


class _Untellable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


@function
def fail_plain(kind: str) -> object:
    if kind == "exit":
        sys.exit(3)
    if kind == "stop":
        raise StopIteration
    return object()


@function
async def sees_clean_context() -> int:
    before = seen.get()
    seen.set(before + 1)
    return before


@function
async def waits(journal: str, name: str = "", ctx: Context = Context()) -> str:
    """Waits until it is told: a file named like the journal with .go beside it."""
    write(journal, f"start {name}")
    ctx.progress(f"waiting {name}")
    try:
        while not Path(f"{journal}.go").exists():
            await asyncio.sleep(0.01)
    except asyncio.CancelledError:
        write(journal, f"cancelled {name}")
        raise
    write(journal, f"end {name}")
    return name


@function
def stays(journal: str, name: str) -> None:
    """Stays, although it is cancelled."""
    write(journal, f"start {name}")
    while not Path(f"{journal}.go").exists():
        time.sleep(0.01)


@function
def waits_plain(journal: str, name: str = "", ctx: Context = Context()) -> bool:
    write(journal, f"start {name}")
    while not Path(f"{journal}.go").exists() and not ctx.cancelled:
        time.sleep(0.01)
    write(journal, f"end {name}")
    return ctx.cancelled


@function(timeout=0.2)
async def times_out() -> None:
    await asyncio.sleep(600)


@function(timeout=0.2)
async def ignores_its_timeout() -> None:
    while True:
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            continue


@function(timeout=0.2)
def times_out_plain() -> None:
    time.sleep(600)


@function
async def blocks(journal: str) -> None:
    write(journal, "blocking")
    time.sleep(600)


@function
async def stops_itself(journal: str) -> None:
    write(journal, "stopping")
    os.kill(os.getpid(), signal.SIGSTOP)


@function
async def keeps_the_lock(journal: str, seconds: int) -> None:
    write(journal, "keeping")
    ctypes.PyDLL(None).sleep(seconds)


#: Writes the time every 20 ms, for ever. Its arguments name the journal, so that whoever looks for it finds it.
TICKS = 'while :; do date +%s.%N >> "$0.ticks"; sleep 0.02; done'


@function
async def starts(journal: str, how: str, returns: bool = False) -> None:
    """Starts a program that goes on and on, as a child or as what a daemon is, and waits for it."""
    ticks = ["sh", "-c", TICKS, journal]
    match how:
        case "child":
            child = await asyncio.create_subprocess_exec(*ticks)
        case "child without environment":
            child = await asyncio.create_subprocess_exec(*ticks, env={"PATH": os.environ["PATH"]})
        case "child in a session":
            child = await asyncio.create_subprocess_exec(*ticks, start_new_session=True)
        case "orphan in a session":
            child = await asyncio.create_subprocess_exec("sh", "-c", 'setsid "$@" & exec sleep 600', "sh", *ticks)
        case "orphan":
            child = await asyncio.create_subprocess_exec("sh", "-c", '("$@" &) ; exec sleep 600', "sh", *ticks)
        case "fork":
            if not os.fork():
                os.setsid()
                if not os.fork():
                    os.execvp("sh", ticks)
                os._exit(0)
            child = None
        case "hidden":
            if not os.fork():
                os.setsid()
                if not os.fork():
                    os.execve("/bin/sh", ticks, {})
                os._exit(0)
            child = None
    if not returns:
        await (child.wait() if child is not None else asyncio.sleep(600))


@function
async def stands() -> dict[str, Any]:
    """The place of the process among others: its ids, and the processes that it sees."""
    own = Path(f"/proc/{os.getpid()}/comm").read_text() == Path("/proc/self/comm").read_text()
    seen = sorted(int(each.name) for each in Path("/proc").iterdir() if each.name.isdecimal())
    blocked = [number.name for number in signal.pthread_sigmask(signal.SIG_BLOCK, ())]
    return {
        "pid": os.getpid(),
        "group": os.getpgrp(),
        "session": os.getsid(0),
        "own": own,
        "seen": seen,
        "blocked": blocked,
        "variables": [name for name in os.environ if name.startswith("LEASE_")],
    }


@function(timeout=20)
async def leaves_orphans() -> bool:
    """Whether no processes are left whose parents ended before them."""
    for _ in range(20):
        await (await asyncio.create_subprocess_exec("sh", "-c", "sleep 0.05 &")).wait()
    while any(int(each.name) > os.getpid() for each in Path("/proc").iterdir() if each.name.isdecimal()):
        await asyncio.sleep(0.01)
    return True


@function
async def becomes(journal: str) -> None:
    """Becomes another program, which no kernel timer ends."""
    os.execvp("sh", ["sh", "-c", TICKS, journal])


@function
async def blocks_in_callback(journal: str) -> None:
    """Blocks in a callback of the loop, which belongs to no task."""
    asyncio.get_running_loop().call_later(0.05, time.sleep, 600)
    await asyncio.sleep(600)


@function
async def blocks_without_alarm(journal: str) -> None:
    """Takes SIGALRM and its timer for itself, as every decorator for time-outs does, and goes on without them."""
    signal.signal(signal.SIGALRM, signal.SIG_IGN)
    signal.setitimer(signal.ITIMER_REAL, 0)
    write(journal, "blocking")
    time.sleep(600)


@function
async def has_a_timeout_of_its_own() -> str:
    """Has a time-out by SIGALRM, which ends its own work in the middle."""

    def ring(*_: Any) -> None:
        raise TimeoutError("its own")

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    try:
        time.sleep(5)
    except TimeoutError as error:
        return str(error)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    return "none"


@function
async def blocks_in_child(journal: str) -> None:
    async def child() -> None:
        write(journal, "blocking")
        time.sleep(600)

    await asyncio.create_task(child())


@function
async def ends_and_dies() -> str:
    """Leaves a callback behind that ends the process after the function has ended, before anybody is told."""
    asyncio.get_running_loop().call_soon(os._exit, 3)
    return "done"


@function
async def dies(how: str, ctx: Context) -> None:
    ctx.progress("about to die")
    await asyncio.sleep(0.3)
    if how == "exit":
        os._exit(3)
    os.kill(os.getpid(), getattr(signal, how))


@function
def hoards(pieces: int, piece: int = 1 << 20, how: str = "", journal: str = "", ctx: Context = Context()) -> int:
    """Allocates pieces, touched, then dies as told or returns what it had. It notes large ones as they come, small ones
    by the thousand: a million notes would take most of its time."""
    kept = []
    for number in range(pieces):
        kept.append(b"x" * piece)
        if piece > 1000 or not number % 1000:
            ctx.progress(f"{number + 1} pieces")
    if journal:
        write(journal, "kept all")
    if how:
        os.kill(os.getpid(), getattr(signal, how))
    return len(kept)


@function
async def hoards_on_the_loop(pieces: int, piece: int = 1 << 20) -> int:
    return len([b"x" * piece for _ in range(pieces)])
