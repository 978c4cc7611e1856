# ruff: noqa: ASYNC251, B008, PLR0912 - what these functions do wrong is their purpose
"""Functions with good and bad luck, run by real executor processes. They write what they did to a journal file."""

from __future__ import annotations

import asyncio
import contextvars
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import tailrace.sdk.context
from tailrace.sdk.function import function
from tailrace.sdk.model.errors import Fatal, RetryLater, Throttled

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
async def pid() -> int:
    return os.getpid()


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
async def blocks_in_child(journal: str) -> None:
    async def child() -> None:
        write(journal, "blocking")
        time.sleep(600)

    await asyncio.create_task(child())


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
