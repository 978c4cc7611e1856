"""Feeds a rival of the queue: a program of three verbs, in each rival's own file.

    python -m tailrace.bench.rivals.redis_celery fill 10000     makes the server ready, and submits so many no-ops
    python -m tailrace.bench.rivals.redis_celery pace 5         200 a second for so long, each with its time
    python -m tailrace.bench.rivals.redis_celery through        waits until the server has nothing of it left

It prints the seconds that it took, without its own start.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import NamedTuple

from ...foundation import loop

#: Submissions a second, as in the scenario `latency`.
RATE = 200
#: Seconds after the last item in which the server must be told that all are done.
TOLD_WITHIN = 20.0


class RivalFeeder(NamedTuple):
    """The verbs of one rival. fill: submits so many no-ops, in its library's fastest way; send: submits one with its
    time; left: number of items that the server still has, waiting or begun; opened: a context around the three; ready:
    makes the server ready."""

    fill: Callable[[int], Awaitable[None]]
    send: Callable[[float], Awaitable[None]]
    left: Callable[[], Awaitable[int]]
    opened: Callable[[], AbstractAsyncContextManager[object]] = contextlib.nullcontext
    ready: Callable[[], Awaitable[None]] | None = None


def main(feeder: RivalFeeder, arguments: Sequence[str] = tuple(sys.argv[1:])) -> None:
    """Runs the verb of the command line. Ends with a message when the server is not told in time."""
    print(loop.run(_fed(feeder, *arguments)))


async def _fed(feeder: RivalFeeder, verb: str, size: str = "0") -> float:
    async with feeder.opened():
        if verb == "fill" and feeder.ready is not None:
            await feeder.ready()
        began = time.perf_counter()
        if verb == "fill":
            await feeder.fill(int(size))
        elif verb == "pace":
            await _paced(feeder, int(RATE * float(size)))
        else:
            await _through(feeder)
        return time.perf_counter() - began


async def _paced(feeder: RivalFeeder, count: int) -> None:
    """Submits 200 a second. A submission that is late is made at once; its time is when it was due."""
    running: set[asyncio.Task[None]] = set()
    began = time.monotonic()
    for number in range(count):
        due = began + number / RATE
        await asyncio.sleep(max(0.0, due - time.monotonic()))
        task: asyncio.Task[None] = asyncio.create_task(_one(feeder, due))
        running.add(task)
        task.add_done_callback(running.discard)
    await asyncio.gather(*running)


async def _one(feeder: RivalFeeder, due: float) -> None:
    await feeder.send(due)


async def _through(feeder: RivalFeeder) -> None:
    until = time.monotonic() + TOLD_WITHIN
    while left := await feeder.left():
        if time.monotonic() > until:
            raise SystemExit(f"all items ran, and the server still has {left} that nobody acknowledged")
        await asyncio.sleep(0.1)
