"""Expiry in an executor: an item is late or it is not, even if the clock says otherwise a moment later."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tailrace.model.outcome import Outcome
from tailrace.runtime.board import Board
from tailrace.runtime.deadman import Deadman
from tailrace.runtime.engine import Engine
from tailrace.runtime.frames import Assign, Done
from tailrace.sdk.function import function
from tailrace.testing.clock import ManualClock


class Stepping(ManualClock):
    """A clock that steps on at each look."""

    def __init__(self, step: float) -> None:
        super().__init__()
        self.step = step

    def wall(self) -> float:
        self.advance(self.step)
        return super().wall()


@function
async def quick() -> None: ...


@pytest.mark.parametrize("step", [0.0, 0.1, 5.0])
async def test_each_item_ends_once_when_its_time_is_over_between_two_looks(step: float) -> None:
    # Given an engine, and items whose time is over about now
    ended: list[tuple[int, Outcome]] = []
    loop = asyncio.get_running_loop()
    all_of_them = loop.create_future()

    def sent(frame: Any) -> None:
        if isinstance(frame, Done):
            ended.extend((key, Outcome.SUCCESS) for key in frame.succeeded)
            ended.extend((row[0], Outcome(row[1])) for row in frame.ended)
            if len(ended) >= 8 and not all_of_them.done():
                all_of_them.set_result(None)

    clock = Stepping(step)
    engine = Engine(
        {"quick": quick},
        slots=4,
        threads=0,
        result_bytes=1 << 20,
        timeout_grace=5.0,
        board=Board.create(8),
        deadman=Deadman(lambda delay: None),
        send=sent,
        parents=0,
        clock=clock,
    )
    extras = {index: ("", (), 0, clock.wall() + 0.05 * index, "") for index in range(8)}
    columns = ([0] * 8, [""] * 8, [b"{}"] * 8, [1] * 8, [1] * 8)
    # When they are assigned
    engine.assign(Assign(1, loop.time() + 1000, 1024, [(0, "quick", 2, "", "")], *columns, extras, True, True))
    async with asyncio.timeout(5):
        await all_of_them
    # Then each ended once
    assert sorted(key for key, _ in ended) == list(range(1024, 1032))
    loop.set_exception_handler(lambda loop, context: None)
    tasks = [runner.task for runner in engine._runners if runner.task is not None]
    engine._runners.clear()
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
