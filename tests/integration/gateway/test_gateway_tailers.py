"""Pausing, resuming and moving tailers through a gateway: requests arrive as they were meant."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tailrace.foundation.identity import whoami
from tailrace.gateway.environment import Neighbours
from tailrace.gateway.server import GatewayServer
from tailrace.model.errors import InvalidRequest
from tailrace.model.gate import Gate
from tailrace.model.seek import END, Move, Seek
from tailrace.wire.gateway import GatewayClient


class Tailers:
    """Tailers that note the calls they get."""

    def __init__(self) -> None:
        self.asked: list[object] = []

    def known(self) -> list[str]:
        return ["t"]

    def check(self, name: str) -> None:
        if name == "replay-1":
            raise InvalidRequest(f"{name!r} is a replay")

    async def heed(self, name: str) -> None:
        self.asked.append(name)

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
            pause = Gate("", "", "pause", "ann", source="t")
            assert not await operator.pause_tailer(pause)
            assert [(gate.source, gate.who) for gate in (await operator.limits()).gates] == [("t", "ann")]
            assert not await operator.pause_tailer(replace(pause, action="resume"))
            assert tailers.asked == ["t", "t"] and not (await operator.limits()).gates
            tailers.asked.clear()
            # And one that runs elsewhere has its gate too; a replay has none
            assert "did you mean 't'" not in await operator.pause_tailer(replace(pause, source="elsewhere"))
            assert [gate.source for gate in (await operator.limits()).gates] == ["elsewhere"]
            with pytest.raises(InvalidRequest, match="is a replay"):
                await operator.pause_tailer(replace(pause, source="replay-1"))
            assert not tailers.asked
            # And what runs nowhere and has no gate is not said to go on; one that runs is started again without a gate
            with pytest.raises(InvalidRequest, match="no tailer 'nowhere' runs now; no gate stands"):
                await operator.pause_tailer(replace(pause, action="resume", source="nowhere"))
            assert "no tailer 'elsewhere' runs now" in await operator.pause_tailer(
                replace(pause, action="resume", source="elsewhere")
            )
            assert not await operator.pause_tailer(replace(pause, action="resume"))
            assert tailers.asked == ["t"]
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
                (Seek("t", position=5, why=" "), "give the reason"),
                (Seek("t", edge="middle", why="x"), "no such target"),
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
            with pytest.raises(InvalidRequest, match="no tailer 't' runs anywhere"):
                await operator.seek_tailer(Seek("t", position=5, why="x"))
    finally:
        await gateway.stop()
