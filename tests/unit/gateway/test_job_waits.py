"""Waits for jobs: shared looks, which may fail, and their end with the gateway."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, cast

import pytest

from tailrace.foundation.clock import SYSTEM_CLOCK
from tailrace.foundation.duties import Duties
from tailrace.gateway.config import GatewayConfig
from tailrace.gateway.job_desk import JobDesk
from tailrace.gateway.polling import JOBS_PER_SECOND, LOOK, look_pause
from tailrace.model.errors import InvalidRequest, NotConnected, Unavailable
from tailrace.model.job import TreeStatus


class Trees:
    """Trees of which those in `over` are complete. `looks`: the trees of each look; `fails`: errors of the next."""

    def __init__(self) -> None:
        self.over: set[str] = set()
        self.looks: list[list[str]] = []
        self.fails: list[Exception] = []
        self.looked = asyncio.Event()
        self.old = False

    async def show(self, tree: str, item: str = "") -> TreeStatus:
        return TreeStatus(tree, "t", "", "complete" if tree in self.over else "running", "continue", "", 0.0)

    async def still_open(self, trees: Sequence[str]) -> list[str]:
        if self.old:
            raise InvalidRequest("no such call")
        self.looks.append(sorted(trees))
        self.looked.set()
        if self.fails:
            raise self.fails.pop()
        return [tree for tree in trees if tree not in self.over]


@pytest.fixture
def trees() -> Trees:
    return Trees()


@pytest.fixture
async def desk(trees: Trees) -> Any:
    anything = cast(Any, None)
    made = JobDesk(GatewayConfig(), cast(Any, trees), anything, anything, SYSTEM_CLOCK, Duties("gateway"))
    made.waits.start()
    yield made
    await made.waits.stop()


async def test_all_waits_share_a_look_and_those_wake_whose_job_is_over(trees: Trees, desk: JobDesk) -> None:
    # Given two waits for a job, and one for another
    waits = [asyncio.create_task(desk.job(tree, 20)) for tree in ("a", "a", "b")]
    await trees.looked.wait()
    # When one job ends, after a look that fails
    trees.fails = [NotConnected("the store is away")]
    trees.over.add("a")
    async with asyncio.timeout(5):
        assert [each.state for each in await asyncio.gather(*waits[:2])] == ["complete"] * 2
    # Then one look was at both jobs, and the other wait goes on until the gateway ends
    assert trees.looks[0] == ["a", "b"]
    assert not waits[2].done()
    desk.waits.close()
    with pytest.raises(Unavailable, match="shutting down"):
        await waits[2]
    with pytest.raises(Unavailable, match="shutting down"):
        await desk.job("b", 20)


async def test_a_store_server_of_the_version_before_is_asked_for_each_job(trees: Trees, desk: JobDesk) -> None:
    trees.old = True
    wait = asyncio.create_task(desk.job("a", 20))
    await asyncio.sleep(0)
    trees.over.add("a")
    async with asyncio.timeout(5):
        assert (await wait).state == "complete"


async def test_a_wait_ends_after_its_time_with_the_state_of_then(desk: JobDesk) -> None:
    assert (await desk.job("a", 0.01)).state == "running"


def test_looks_at_many_jobs_are_further_apart() -> None:
    assert look_pause(1) == LOOK
    assert look_pause(2 * JOBS_PER_SECOND) == 2.0
