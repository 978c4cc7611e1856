"""A function over lines of objects that says in a journal of its own which line it ran under which id."""

from __future__ import annotations

import os
import time

import tailrace

JOURNAL = os.environ.get("TAILRACE_TEST_JOURNAL", "")


def note(word: str, ctx: tailrace.Context, line: str) -> None:
    """`start|end <id> <fence> <attempt> <CLOCK_MONOTONIC> <pid> <line>`, by one write."""
    text = f"{word} {ctx.id} {ctx.fence} {ctx.attempt} {time.monotonic():.6f} {os.getpid()} {line}\n"
    descriptor = os.open(JOURNAL, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)


@tailrace.function
async def cover(line: str, ctx: tailrace.Context) -> None:
    note("start", ctx, line)
    note("end", ctx, line)


@tailrace.function(retry=tailrace.Retry(max_attempts=1))
async def measure_content(content: bytes, ctx: tailrace.Context) -> None:
    """Notes the size of content, whether it came by value or by reference."""
    del content
    size = 0
    async for piece in ctx.open():
        size += len(piece)
    note("end", ctx, str(size))


@tailrace.function(retry=tailrace.Retry(max_attempts=1))
def measure_in_thread(content: bytes, ctx: tailrace.Context) -> None:
    del content
    note("end", ctx, str(sum(map(len, ctx.open()))))
