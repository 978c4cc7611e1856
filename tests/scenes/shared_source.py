"""A source that a group shares out as a test says, and pumps that end as one says, to see how a tailer reacts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

from tailrace.model.errors import StaleFence
from tailrace.model.lease import LeaseSizes
from tailrace.tailers.config import TailerConfig
from tailrace.tailers.counts import TailerCounts
from tailrace.tailers.pumps.shared_pump import SharedPump
from tailrace.tailers.registry import Environment, kind_of
from tailrace.tailers.resources import Setup

CONFIG = TailerConfig.model_validate({"name": "t", "source": {"kind": "log", "stream": "s"}, "function": "f"})
SIZES = LeaseSizes.of_heartbeat(0.1)
ENVIRONMENT = Environment(*cast(list[Any], [None] * 10))  # nothing is stored here


class Window:
    items = bytes = 0


class Deposed:
    """A pump that hears of another owner as it is cancelled: it says so, and nothing of the cancellation.

    Of those made only the first `deaf` do; a later one, which nobody should make, ends as it is told.
    """

    made, deaf = 0, 2

    def __init__(self, *given: Any) -> None:
        type(self).made += 1
        self.deaf = type(self).made <= type(self).deaf
        self.paused = self.draining = False
        self.window = Window()
        self.runs = asyncio.Event()

    async def run(self) -> None:
        self.runs.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            if not self.deaf:
                raise
            raise StaleFence("another owner has it") from None

    async def drain(self, timeout: float) -> bool:
        return True

    def pause(self, paused: bool) -> None:
        self.paused = paused

    def wake(self) -> None:
        pass


class Busy(Deposed):
    """A pump with items out, which another owner takes when it is told to."""

    in_flight = 3

    def __init__(self) -> None:
        super().__init__()
        self.draining_began, self.taken = asyncio.Event(), asyncio.Event()

    async def run(self) -> None:
        self.runs.set()
        await self.taken.wait()
        raise StaleFence("another owner has it")

    async def drain(self, timeout: float) -> bool:
        self.draining_began.set()
        await asyncio.Event().wait()
        return True


class Share:
    """The share that a group gives."""

    release_within = 1.0

    def __init__(self, share: frozenset[str]) -> None:
        self._share, self._changed = share, asyncio.Event()

    @property
    def given(self) -> frozenset[str]:
        return self._share

    def give(self, share: frozenset[str]) -> None:
        self._share = share
        self._changed.set()

    async def open(self) -> None:
        pass

    async def changed(self, known: frozenset[str]) -> frozenset[str]:
        while self._share == known:
            self._changed.clear()
            await self._changed.wait()
        return self._share

    def partition(self, name: str) -> str:
        return name

    async def close(self) -> None:
        pass


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not true():
            await asyncio.sleep(0)


def shared(source: Share) -> SharedPump:
    setup = Setup(ENVIRONMENT, "nowhere:1", cast(Any, None), SIZES, config=CONFIG, kind=kind_of("log"))
    return SharedPump(setup, TailerCounts(), cast(Any, source))


async def turns(count: int = 20) -> None:
    """Lets everything that can go on go on."""
    for _ in range(count):
        await asyncio.sleep(0)
