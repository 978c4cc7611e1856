"""Frames gather behind a slow write while more comes; a lone item's frame waits for nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from tailrace.model.linger import FRAMES
from tailrace.testing.clock import ManualClock
from tailrace.wire.link import Link
from tailrace.wire.session import LinkConnection
from tailrace.wire.v1 import scheduler_pb2 as pb


class End:
    """An endpoint with one frame to say for each time that it is asked to."""

    def __init__(self) -> None:
        self.waiting = 0

    def compose(self) -> pb.TailerFrame | None:
        if not self.waiting:
            return None
        self.waiting -= 1
        return pb.TailerFrame(draining=True)

    def opened(self, resumed: bool) -> None: ...

    def accept(self, frame: object) -> None: ...

    def broken(self) -> None: ...

    def lost(self) -> None: ...


class SlowStream:
    """A stream whose every write takes a second by the clock. `meanwhile` happens during the first; `written` is set at
    the second."""

    def __init__(self, clock: ManualClock, meanwhile: Callable[[], None]) -> None:
        self._clock = clock
        self._meanwhile = meanwhile
        self.first, self.second = asyncio.Event(), asyncio.Event()

    async def receive(self) -> object:
        await asyncio.Event().wait()
        return None

    async def send(self, message: object, /) -> None:
        self._clock.advance(1.0)
        if self.first.is_set():
            self.second.set()
        else:
            self._meanwhile()
            self.first.set()


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Pauses that were made, which take no time."""
    made: list[float] = []
    sleep = asyncio.sleep

    async def noted(delay: float) -> None:
        if 0 < delay <= FRAMES.seconds:
            made.append(delay)
        await sleep(0 if delay <= FRAMES.seconds else delay)

    monkeypatch.setattr(asyncio, "sleep", noted)
    return made


@pytest.mark.parametrize("behind", [True, False])
async def test_a_pause_follows_a_slow_write_only_if_more_came_behind_it(pauses: list[float], behind: bool) -> None:
    # Given a connection whose writes are slow
    clock, end = ManualClock(), End()
    connection = LinkConnection(Link(), end, pb.TailerFrame, 1000.0, clock)

    def more() -> None:
        end.waiting += 1
        connection.notify()

    stream = SlowStream(clock, more if behind else lambda: None)
    # When a frame is sent, and another one is wanted during its write or after it
    more()
    running = asyncio.create_task(connection.run(stream, []))
    async with asyncio.timeout(20):
        await stream.first.wait()
        if not behind:
            for _ in range(3):  # the writer is told that its write is over
                await asyncio.sleep(0)
            more()
        await stream.second.wait()
    # Then the second one waited only in the first case
    assert pauses == ([FRAMES.seconds] if behind else [])
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
