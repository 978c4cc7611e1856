"""One part in the foreground of one process: start, say so, wait for a signal, drain, stop."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from collections.abc import Awaitable, Callable
from typing import Any

from ..foundation.lifecycle import Part, end_all, kept_open

#: Seconds that a part may drain before it is stopped, unless its settings say otherwise. A parent waits longer, for
#: the part's last words.
GRACE = 30.0
#: Signals of one kind within so many seconds are one.
TOGETHER = 0.5


class Signals:
    """SIGTERM and SIGINT as events: the first asks to drain, the second to stop at once.

    Two of one kind that come together are one: a terminal and a service manager signal every process of a worker, and
    its guard passes signals on."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.drain = asyncio.Event()
        self.hurry = asyncio.Event()
        self._clock = clock
        self._last: dict[int, float] = {}

    def install(self) -> None:
        """Takes over both signals in the running loop."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.caught, number)

    def caught(self, number: int) -> None:
        """Takes one more signal, unless it is the echo of one."""
        now = self._clock()
        if now - self._last.get(number, -TOGETHER) >= TOGETHER:
            self._last[number] = now
            self.arrived()

    def arrived(self) -> None:
        """Takes one more request to end, by a signal or the parent's death."""
        (self.hurry if self.drain.is_set() else self.drain).set()


async def run(part: Part, *, started: Callable[[], None], signals: Signals, grace: float = GRACE) -> None:
    """Runs a part until it is told to end. `started` is called when it is ready: a worker is when it is attached. A
    part that has duties is kept open."""
    attached: Callable[[], Awaitable[None]] | None = getattr(part, "attached", None)
    part = kept_open(part)
    if not await _started(part, signals):
        return
    telling = asyncio.create_task(_tell(attached, started), name="tell")
    try:
        await signals.drain.wait()
        draining = asyncio.create_task(part.drain(grace), name="drain")
        hurry = asyncio.create_task(signals.hurry.wait(), name="hurry")
        done, _ = await asyncio.wait({draining, hurry}, return_when=asyncio.FIRST_COMPLETED)
        await end_all([draining, hurry])
        if draining in done:
            draining.result()
    finally:
        await end_all([telling])
        await part.stop()


async def _started(part: Part, signals: Signals) -> bool:
    """Starts a part, unless it is told to end before it is ready: then it is stopped, however long it would take."""
    starting = asyncio.create_task(part.start(), name="start")
    ending = asyncio.create_task(signals.drain.wait(), name="end-while-starting")
    try:
        await asyncio.wait({starting, ending}, return_when=asyncio.FIRST_COMPLETED)
        if starting.done():
            starting.result()
            return True
    finally:
        await end_all([starting, ending])
    await part.stop()
    return False


async def _tell(attached: Callable[[], Awaitable[None]] | None, started: Callable[[], None]) -> None:
    if attached is not None:
        await attached()
    started()


def watch_lifeline(descriptor: int, signals: Signals) -> None:
    """Drains when the parent is gone: its end of the pipe closes by itself."""

    def closed() -> None:
        asyncio.get_running_loop().remove_reader(descriptor)
        signals.arrived()

    asyncio.get_running_loop().add_reader(descriptor, closed)


def say_ready(descriptor: int, facts: dict[str, Any]) -> None:
    """Tells the parent that this part works, and its address."""
    os.write(descriptor, json.dumps(facts).encode() + b"\n")
    os.close(descriptor)
