"""Pausing, resuming and moving tailers through a gateway: what is asked arrives as it was meant."""

from __future__ import annotations

from typing import Any

import pytest

from tailrace.foundation.identity import whoami
from tailrace.gateway.environment import Neighbours
from tailrace.gateway.server import GatewayServer
from tailrace.model.errors import InvalidRequest
from tailrace.model.seek import END, Move, Seek
from tailrace.wire.gateway import GatewayClient


class Tailers:
    """Notes what it is asked."""

    def __init__(self) -> None:
        self.asked: list[object] = []

    def set_paused(self, name: str, paused: bool) -> None:
        self.asked.append((name, paused))

    async def seek(self, seek: Seek) -> list[Move]:
        self.asked.append(seek)
        return [Move("0", 5, 90, 80), Move("1", 0, 0, 0)]


def server(stores: Any, tailers: Tailers | None) -> GatewayServer:
    gateway: GatewayServer = stores.gateway(beside=Neighbours(tailers=tailers))
    return gateway


async def test_what_is_asked_arrives_as_it_was_meant(stores: Any) -> None:
    tailers = Tailers()
    gateway = server(stores, tailers)
    await gateway.start()
    try:
        async with GatewayClient(gateway.address) as operator:
            await operator.pause_tailer("t", True)
            await operator.pause_tailer("t", False)
            assert tailers.asked == [("t", True), ("t", False)]
            tailers.asked.clear()
            wanted = [
                Seek("t", position=0, why="x", who="ann@host"),
                Seek("t", edge=END, partition="", why="x", who="ann@host"),
                Seek("t", time=12.5, partition="3", who="ann@host", dry_run=True),
            ]
            for seek in wanted:
                assert await operator.seek_tailer(seek) == [Move("0", 5, 90, 80), Move("1", 0, 0, 0)]
            assert tailers.asked == wanted
            # Without a name it is who asks, and without a reason nothing is passed
            await operator.seek_tailer(Seek("t", position=5, why="x"))
            assert tailers.asked[-1] == Seek("t", position=5, why="x", who=whoami())
            for wrong, why in (
                (Seek("t", position=5, why=" "), "say why"),
                (Seek("t", edge="middle", why="x"), "to where"),
            ):
                with pytest.raises(InvalidRequest, match=why):
                    await operator.seek_tailer(wrong)
    finally:
        await gateway.stop()


async def test_a_gateway_without_tailers_says_so(stores: Any) -> None:
    gateway = server(stores, None)
    await gateway.start()
    try:
        async with GatewayClient(gateway.address) as operator:
            with pytest.raises(InvalidRequest, match="no tailers beside it"):
                await operator.pause_tailer("t", True)
            with pytest.raises(InvalidRequest, match="no tailers beside it"):
                await operator.seek_tailer(Seek("t", position=5, why="x"))
    finally:
        await gateway.stop()
