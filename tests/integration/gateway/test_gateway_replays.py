"""Replays through a gateway: requests arrive as they were meant, and answers come back whole."""

from __future__ import annotations

from typing import Any

import pytest

from tailrace.foundation.identity import whoami
from tailrace.gateway.environment import Neighbours
from tailrace.gateway.server import GatewayServer
from tailrace.model.errors import InvalidRequest
from tailrace.model.replay import Bound, Progress, Replay, ReplayOrder, ReplayState, Stretch
from tailrace.model.seek import END, START
from tailrace.wire.gateway import GatewayClient

STRETCH = Stretch("0", 5, 1 << 40, ((5, 9), (20, 20)), 6, 2)
REPLAY = Replay(7, "t", (STRETCH,), "failed", 2.5, "reporting", "ann@host", "why", 10.0, state=ReplayState.RETRYING)
PROGRESS = Progress(REPLAY, {"succeeded": 3, "delayed": 2, "dead": 1}, "2 in flight")


class Replays:
    """Replays that note the calls they get."""

    def __init__(self) -> None:
        self.asked: list[object] = []

    async def order(self, order: ReplayOrder) -> Progress:
        self.asked.append(order)
        return PROGRESS

    async def list(self, limit: int) -> list[Progress]:
        self.asked.append(limit)
        return [PROGRESS, PROGRESS]

    async def get(self, number: int) -> Progress:
        self.asked.append(number)
        return PROGRESS

    async def change(self, number: int, what: str) -> Progress:
        self.asked.append((number, what))
        return PROGRESS


def server(stores: Any, replays: Replays | None) -> GatewayServer:
    gateway: GatewayServer = stores.gateway(beside=Neighbours(replays=replays))
    return gateway


async def test_what_is_asked_arrives_as_it_was_meant_and_the_answer_is_whole(stores: Any) -> None:
    replays = Replays()
    gateway = server(stores, replays)
    await gateway.start()
    try:
        async with GatewayClient(gateway.address) as operator:
            wanted = [
                ReplayOrder("t", Bound(0), Bound(edge=END), partition="", who="ann@host", dry_run=True),
                ReplayOrder("t", Bound(edge=START), Bound(time=12.5), "failed", "3", 2.5, "", "ann@host", "why"),
            ]
            views = [await operator.start_replay(order) for order in wanted]
            assert replays.asked == wanted
            [view] = {view.number: view for view in views}.values()
            assert (view.number, view.name, view.state, view.items) == (7, "t@replay-7", "retrying", 6)
            assert (view.counts, view.ended, view.detail) == (PROGRESS.counts, 4, "2 in flight")
            assert view.stretches == [("0", 5, 1 << 40, 6, 2, 2)]
            await operator.start_replay(wanted[0]._replace(who=""))
            assert replays.asked[-1] == wanted[0]._replace(who=whoami())
            assert [each.number for each in await operator.replays(limit=5)] == [7, 7]
            assert [each.number for each in await operator.replays(7)] == [7]
            assert (await operator.change_replay(7, "pause")).state == "retrying"
            assert replays.asked[-4:] == [5, 7, 7, (7, "pause")]  # once more before the act
            for wrong, why in (
                (wanted[0]._replace(begin=Bound(edge="middle")), "--from is missing or wrong"),
                (wanted[0]._replace(end=Bound(edge="middle")), "--to is missing or wrong"),
                (wanted[0]._replace(why="x" * 501), "501 characters"),
            ):
                with pytest.raises(InvalidRequest, match=why):
                    await operator.start_replay(wrong)
    finally:
        await gateway.stop()


async def test_a_gateway_without_a_store_of_replays_says_so(stores: Any) -> None:
    gateway = server(stores, None)
    await gateway.start()
    try:
        async with GatewayClient(gateway.address) as operator:
            with pytest.raises(InvalidRequest, match="no store of replays"):
                await operator.replays()
    finally:
        await gateway.stop()
