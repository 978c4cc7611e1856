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
    """Takes so long that a kill finds some of its runs."""
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


@tailrace.function
async def pad(n: int) -> str:
    """A result of which many together fit no payload."""
    return f"{n}".rjust(100_000)


@tailrace.function
async def total_by_pages(texts: tailrace.Gathered[str]) -> list[int]:
    return [len(texts), sum([int(text) async for text in texts])]


@tailrace.function
def total_by_pages_in_thread(texts: tailrace.Gathered[str]) -> list[int]:
    return [len(texts), sum(int(text) for text in texts)]


@tailrace.function
async def total_of_list(texts: list[str]) -> list[int]:
    return [len(texts), sum(map(int, texts))]


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


@tailrace.function(retry=tailrace.Retry(first=0.01, max_attempts=1000))
async def never(n: int) -> int:
    raise RuntimeError(f"never {n}")


@tailrace.function(retry=tailrace.Retry(first=0.01))
async def grow(ctx: tailrace.Context, depth: int) -> int:
    """Adds two items of the next depth to its own job, and one to the job behind it; the first attempt fails after
    that."""
    async with tailrace.AsyncClient(os.environ["TAILRACE_TEST_GATEWAY"]) as client:
        here = client.job_of(ctx)
        if depth < 3:
            await here.add_many([depth + 1, depth + 1], to=grow)
        await here.add(value=depth, to="add_one")
    if ctx.attempt == 1:
        raise RuntimeError("once more")
    return depth


@tailrace.function
async def hear(event: dict[str, object]) -> None:
    note(f"told {event['id']} {event['state']} {event.get('succeeded', event.get('why'))}")


@tailrace.function
async def hear_of(event: dict[str, object]) -> None:
    note(f"heard {event['id']} {event['type']} {event['job']}")
