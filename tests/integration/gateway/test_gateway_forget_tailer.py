"""A tailer of the log that is forgotten over the gateway: the retention waits for it no more."""

import asyncio
from pathlib import Path

import pytest
from scenes import commands

from tailrace.assembly.embedded import EmbeddedStores
from tailrace.assembly.environments import gateway_stores
from tailrace.gateway.config import GatewayConfig
from tailrace.gateway.environment import Neighbours
from tailrace.gateway.server import GatewayServer
from tailrace.model.errors import InvalidRequest
from tailrace.model.seek import ForgetTailer, Move, Seek
from tailrace.stores.checkpoints.checkpoints import Mark
from tailrace.stores.log.readers import KnownTailer, LogReaders
from tailrace.wire.gateway import GatewayClient

CONFIG = GatewayConfig.model_validate({"listen": "127.0.0.1:0"})


class Running:
    """A TailerControl of the tailer "live"."""

    def known(self) -> list[str]:
        return ["live"]

    def check(self, name: str) -> None:
        raise AssertionError

    async def heed(self, name: str) -> None:
        raise AssertionError

    async def seek(self, seek: Seek) -> list[Move]:
        raise AssertionError


async def test_a_tailer_that_runs_nowhere_is_forgotten_with_its_checkpoint_and_that_is_an_act(tmp_path: Path) -> None:
    async with EmbeddedStores(tmp_path) as stores:
        # Given two known tailers of the log, one of them running
        readers = LogReaders(stores.checkpoints)
        for name in ("live", "former"):
            await readers.note(name, "orders")
            await stores.checkpoints.open(name, 3)
            await stores.checkpoints.commit(name, 3, {"0": Mark(5), "1": Mark(7)})
        assert await readers.readers() == [KnownTailer(name, "orders", {0: 5, 1: 7}) for name in ("former", "live")]
        gateway = GatewayServer(CONFIG, gateway_stores(stores), Neighbours(tailers=Running()))
        await gateway.start()
        async with GatewayClient(gateway.address) as operator:
            # When the other one is forgotten, then it holds nothing, and its checkpoint is gone
            assert await operator.forget_tailer(ForgetTailer("former", "ann", "moved to another system")) == "orders"
            assert await readers.known() == {"live": "orders"}
            assert await stores.checkpoints.load("former") == {}
            act = (await operator.acts())[0]
            assert (act.what, act.on, act.who, act.why) == ("tailer forget", "former", "ann", "moved to another system")
            # And one that runs, or that nobody knows, is refused with what to do
            with pytest.raises(InvalidRequest, match="'live' runs beside this gateway: take its file away"):
                await operator.forget_tailer(ForgetTailer("live"))
            for unknown in ("former", "liver"):
                with pytest.raises(InvalidRequest, match=f"no tailer '{unknown}' of the log is known"):
                    await operator.forget_tailer(ForgetTailer(unknown))
            # And one that comes back is known again, until somebody says so on the command line
            await readers.note("former", "orders")
            assert await readers.known() == {"former": "orders", "live": "orders"}
            words = ("tailer", "forget", "former", "--why", "gone", "--gateway", gateway.address)
            said = await asyncio.to_thread(commands.tailrace, *words, check=True)
            assert said.stdout == "former: forgotten; the retention of orders waits for it no more\n"
            assert await readers.known() == {"live": "orders"}
            again = await asyncio.to_thread(commands.tailrace, *words)
            assert again.returncode != 0 and "no tailer 'former' of the log is known" in again.stderr
            assert "Traceback" not in again.stderr
        await gateway.stop()
