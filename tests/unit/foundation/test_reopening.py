"""A part of which a duty fails is closed and opened again, after pauses that grow; parts end despite any failure."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.foundation.duties import Duties
from tailrace.foundation.lifecycle import Group, Reopening
from tailrace.model.backoff import PART
from tailrace.model.reopening import MOST, WINDOW, Failures


class Recorder:
    """A part that notes its calls, with one duty; `steps` may raise the errors that `raises` has for them."""

    def __init__(self, duty: Callable[[], Awaitable[Any]] | None = None) -> None:
        self.duties = Duties("recorder")
        self.steps: list[str] = []
        self.raises: dict[str, list[BaseException | None]] = {}
        self.opened = asyncio.Event()
        self._duty = duty

    def _step(self, name: str) -> None:
        self.steps.append(name)
        if self.raises.get(name) and (error := self.raises[name].pop(0)) is not None:
            raise error

    async def start(self) -> None:
        self._step("start")
        if self._duty is not None:
            self.duties.begin(self._run(self._duty), "duty")
        self.opened.set()

    async def _run(self, duty: Callable[[], Awaitable[Any]]) -> None:
        await duty()

    async def drain(self, timeout: float) -> None:
        self._step("drain")

    async def stop(self) -> None:
        await self.duties.end()
        self._step("stop")


class Failing:
    """A duty that fails each time it is told to."""

    def __init__(self) -> None:
        self.now = asyncio.Event()
        self.error: BaseException = ValueError("planted")

    async def __call__(self) -> None:
        await self.now.wait()
        self.now.clear()
        raise self.error


async def opened_again(part: Recorder) -> None:
    part.opened.clear()
    async with asyncio.timeout(10):
        await part.opened.wait()


@pytest.mark.parametrize("error", [ValueError("planted"), asyncio.CancelledError("of another task")])
async def test_a_duty_that_fails_closes_the_part_which_opens_again_and_is_told(error: BaseException) -> None:
    # Given a part that is kept open, of which a duty fails
    duty = Failing()
    duty.error = error
    part = Recorder(duty)
    kept = Reopening(part, chance=lambda: -0.499)  # hardly a pause
    await kept.start()
    assert kept.troubles() == []
    for times in (1, 2):
        # When it fails, Then all of it was closed before it opened again
        duty.now.set()
        await opened_again(part)
        assert part.steps == ["start", *["stop", "start"] * times]
        [trouble] = kept.troubles()
        assert (trouble.part, trouble.times) == ("recorder", times)
        assert "duty" in trouble.what
    await kept.drain(1)
    await kept.stop()
    assert part.steps[-2:] == ["drain", "stop"]


async def test_what_fails_as_it_closes_or_opens_is_tried_again_without_end() -> None:
    duty = Failing()
    part = Recorder(duty)
    kept = Reopening(part, chance=lambda: -0.499)  # hardly a pause
    await kept.start()
    # Given a part that cannot be closed, and not be opened for a while
    part.raises = {"stop": [OSError("full")], "start": [OSError("busy")] * 5}
    # When its duty fails
    duty.now.set()
    await opened_again(part)
    # Then it is open in the end, and nothing was begun before the last was closed
    assert part.steps == ["start", *["stop", "start"] * 6]
    await kept.stop()


async def test_a_part_that_is_closed_just_now_ends_when_it_is_to_end() -> None:
    duty = Failing()
    part = Recorder(duty)
    kept = Reopening(part, chance=lambda: 1e6)  # it stays closed for long
    await kept.start()
    duty.now.set()
    async with asyncio.timeout(10):
        while part.steps[-1] != "stop":
            await asyncio.sleep(0)
    # When it is drained and stopped meanwhile, Then both return, and it is not drained
    assert "closed" in kept.troubles()[0].what
    await kept.drain(1)
    await kept.stop()
    assert part.steps == ["start", "stop", "stop"]


async def test_a_first_start_that_fails_is_raised() -> None:
    part = Recorder()
    part.raises = {"start": [OSError("taken")]}
    with pytest.raises(OSError, match="taken"):
        await Reopening(part).start()


async def test_a_group_ends_all_of_its_parts_whatever_one_raises() -> None:
    # Given three parts, of which one cannot be drained and two cannot be stopped
    parts = [Recorder() for _ in range(3)]
    parts[2].raises = {"drain": [ValueError("first")], "stop": [OSError("second")]}
    parts[1].raises = {"stop": [ValueError("third")]}
    group = Group(parts)
    await group.start()
    # When they end, Then the first error is raised, and all of them ended
    with pytest.raises(ValueError, match="first"):
        await group.drain(1)
    with pytest.raises(OSError, match="second"):
        await group.stop()
    assert [part.steps for part in parts] == [["start", "drain", "stop"]] * 3


async def test_the_parts_of_a_group_share_the_time_of_its_drain(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    given_times: list[float] = []

    class Slow(Recorder):
        async def drain(self, timeout: float) -> None:
            nonlocal now
            given_times.append(timeout)
            now += 20.0

    # Given a group of three parts, each of which takes 20 s to drain
    group = Group([Slow() for _ in range(3)])
    await group.start()
    # When it is drained within 30 s, Then the second has what the first one left, and the third has nothing
    monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: now)
    await group.drain(30.0)
    assert given_times == [30.0, 10.0, 0.0]
    await group.stop()


async def test_a_duty_that_ends_before_it_began_and_one_that_returns_are_no_failures() -> None:
    duties = Duties("p")

    async def over() -> None:
        pass

    duties.begin(over(), "over")
    failure = asyncio.create_task(duties.failure())
    for _ in range(3):
        await asyncio.sleep(0)
    duties.begin(over(), "ended at once")
    await duties.end()
    assert not failure.done()
    failure.cancel()


@given(st.lists(st.floats(0, WINDOW / 3), max_size=80))
def test_pauses_double_within_a_window_up_to_a_cap_and_begin_anew_after_it(gaps: list[float]) -> None:
    failures, now = Failures(), 0.0
    for gap in gaps:
        now += gap
        failures = failures.with_failure_at(now)
        # Then it never gives up, never waits longer than the cap, and what is remembered is bounded
        assert PART.first <= failures.pause(now) <= PART.last
        assert len(failures.times) <= MOST
        assert failures.with_failure_at(now).pause(now) >= failures.pause(now)
    assert failures.with_failure_at(now + WINDOW + 1).pause(now + WINDOW + 1) == PART.first
