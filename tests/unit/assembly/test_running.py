"""One part in the foreground: started, drained at the first signal, stopped at the second, never left behind."""

from __future__ import annotations

import asyncio

import pytest

from tailrace.assembly.running import Signals, run


class Recorder:
    """A part that says what was done to it; `stuck` names the step that never ends by itself."""

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
