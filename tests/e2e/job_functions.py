"""Functions of a tree of jobs; each run leaves a line of its own in a journal."""

from __future__ import annotations

import asyncio
import os

import tailrace

JOURNAL = os.environ.get("TAILRACE_TEST_JOURNAL", "")


def note(text: str) -> None:
    descriptor = os.open(JOURNAL, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(descriptor, f"{text}\n".encode())
    finally:
        os.close(descriptor)


@tailrace.function(retry=tailrace.Retry(max_crashes=50))
async def square(n: int) -> int:
    """Takes long enough that a kill finds some of them running."""
    await asyncio.sleep(0.02)
    note(f"square {n}")
    return n * n


@tailrace.function(retry=tailrace.Retry(max_crashes=50))
async def add_one(value: int) -> int:
    note(f"add_one {value}")
    return value + 1


@tailrace.function
async def total(values: list[int]) -> int:
    return sum(values)


@tailrace.function(results=False)
async def tells_nothing(n: int) -> None:
    """A function without results, which may have no job behind it."""


@tailrace.function
async def two_arguments(a: int, b: int) -> int:
    return a + b


@tailrace.function(retry=tailrace.Retry(max_attempts=1))
async def odd_only(n: int) -> int:
    if n % 2 == 0:
        raise tailrace.Fatal(f"{n} is even")
    return n
