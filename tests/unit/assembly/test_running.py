"""One part in the foreground: started, drained at the first signal, stopped at the second, never left behind."""

from __future__ import annotations

import asyncio
import signal

import pytest

from tailrace.assembly.running import Signals, run


class Recorder:
    """A part that notes its calls; `stuck` names the step that never ends by itself."""

    def __init__(self, stuck: str = "") -> None:
        self.steps: list[str] = []
        self._stuck = stuck

    async def _step(self, name: str) -> None:
        self.steps.append(name)
        if name == self._stuck:
            await asyncio.Event().wait()

    async def start(self) -> None:
        await self._step("start")

    async def drain(self, timeout: float) -> None:
        await self._step("drain")

    async def stop(self) -> None:
        await self._step("stop")


async def running(part: Recorder, signals: Signals) -> asyncio.Task[None]:
    task = asyncio.create_task(run(part, started=lambda: part.steps.append("ready"), signals=signals))
    for _ in range(5):
        await asyncio.sleep(0)
    return task


async def test_the_first_signal_drains_and_then_stops() -> None:
    part, signals = Recorder(), Signals()
    task = await running(part, signals)
    signals.arrived()
    await asyncio.wait_for(task, 5)
    assert part.steps == ["start", "ready", "drain", "stop"]


async def test_the_second_signal_stops_a_drain_that_does_not_end() -> None:
    part, signals = Recorder("drain"), Signals()
    task = await running(part, signals)
    signals.arrived()
    for _ in range(5):
        await asyncio.sleep(0)
    signals.arrived()
    await asyncio.wait_for(task, 5)
    assert part.steps == ["start", "ready", "drain", "stop"]


async def test_a_signal_ends_a_start_that_does_not_end() -> None:
    part, signals = Recorder("start"), Signals()
    task = await running(part, signals)
    signals.arrived()
    await asyncio.wait_for(task, 5)
    assert part.steps == ["start", "stop"]


async def test_a_start_that_fails_is_raised() -> None:
    class Failing(Recorder):
        async def start(self) -> None:
            raise OSError("no such device")

    with pytest.raises(OSError, match="no such device"):
        await run(Failing(), started=lambda: None, signals=Signals())


@pytest.mark.parametrize(
    ("caught", "drains", "hurries"),
    [
        ([(signal.SIGTERM, 0.0)], True, False),
        ([(signal.SIGTERM, 0.0), (signal.SIGTERM, 0.01)], True, False),  # told twice of one wish
        ([(signal.SIGINT, 0.0), (signal.SIGINT, 0.01), (signal.SIGINT, 0.2)], True, False),
        ([(signal.SIGTERM, 0.0), (signal.SIGINT, 0.0)], True, True),
        ([(signal.SIGINT, 0.0), (signal.SIGINT, 0.6)], True, True),
    ],
)
async def test_a_second_wish_hurries_and_an_echo_of_the_first_does_not(
    caught: list[tuple[int, float]], drains: bool, hurries: bool
) -> None:
    now = 0.0
    signals = Signals(lambda: now)
    for number, at in caught:
        now = 100.0 + at
        signals.caught(number)
    assert (signals.drain.is_set(), signals.hurry.is_set()) == (drains, hurries)
