"""A tailer that is forgotten over the gateway: nothing of it is left, and the log's retention waits for it no more."""

import asyncio
from pathlib import Path

import pytest
from scenes import commands

from tailrace.assembly.embedded import EmbeddedStores
from tailrace.assembly.environments import gateway_stores
from tailrace.gateway.config import GatewayConfig
from tailrace.gateway.environment import Neighbours
from tailrace.gateway.server import GatewayServer
from tailrace.model.errors import InvalidRequest, StaleFence
from tailrace.model.life import Life
from tailrace.model.seek import ForgetTailer, Move, Seek
from tailrace.stores.checkpoints.checkpoints import Mark
from tailrace.stores.checkpoints.lives import ENTRIES, NOTES, Lives
from tailrace.stores.log.readers import KnownTailer, LogReaders
from tailrace.stores.tailer_states import TailerStates
from tailrace.wire.gateway import GatewayClient

CONFIG = GatewayConfig.model_validate({"listen": "127.0.0.1:0"})


class Running:
    """A TailerControl of the tailer "live"."""

    def known(self) -> list[str]:
        return ["live"]

    def check(self, name: str) -> None:
        pass

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
                with pytest.raises(InvalidRequest, match=f"no tailer '{unknown}' is known"):
                    await operator.forget_tailer(ForgetTailer(unknown))
            # And one that comes back is known again, until somebody says so on the command line
            await readers.note("former", "orders")
            assert await readers.known() == {"former": "orders", "live": "orders"}
            words = ("tailer", "forget", "former", "--why", "gone", "--gateway", gateway.address)
            said = await asyncio.to_thread(commands.tailrace, *words, check=True)
            assert said.stdout == "former: forgotten; the retention of orders waits for it no more\n"
            assert await readers.known() == {"live": "orders"}
            again = await asyncio.to_thread(commands.tailrace, *words)
            assert again.returncode != 0 and "no tailer 'former' is known" in again.stderr
            assert "Traceback" not in again.stderr
        await gateway.stop()


async def test_all_that_rests_of_a_tailer_of_any_kind_is_forgotten_once_nobody_has_its_lease(tmp_path: Path) -> None:
    async with EmbeddedStores(tmp_path) as stores:
        checkpoints, ownership = stores.checkpoints, stores.ownership
        # Given a tailer of partitions with lives and notes, one of whose owners died; and one of nearly the same name
        for name in ("orders", "orders-2"):
            for part in ("orders-0", "orders-1"):
                owner = await ownership.take(name, part, "killed:7:a", 30.0, 0)
                assert owner is not None
                await checkpoints.open(f"{name}/{part}", owner.epoch)
                await checkpoints.commit(f"{name}/{part}", owner.epoch, {part: Mark(5)})
                if part == "orders-0":
                    await ownership.release(name, part, owner.epoch)
            await Lives(checkpoints, name).note("topic:orders", Life("a"))
            await checkpoints.open(ENTRIES + name, 1)
            await checkpoints.commit(ENTRIES + name, 1, {"orders": Mark(3)})
        # When it is forgotten while the owner renews, then that is refused, and nothing is changed
        waits: list[float] = []

        async def renewed(seconds: float) -> None:
            waits.append(seconds)
            row = await ownership.read("orders", "orders-1")
            assert row is not None
            await ownership.renew("orders", "orders-1", row.epoch, ())

        with pytest.raises(InvalidRequest, match="'orders' runs: killed:7:a has its lease"):
            await TailerStates(checkpoints, ownership, renewed).forget("orders")
        assert waits == [pytest.approx(30.6, abs=0.1)]
        assert (await checkpoints.load("orders/orders-0"))["orders-0"].position == 5
        # And once it does not renew for a lease nothing is left but of the other one, and late writes are refused
        late = await ownership.read("orders", "orders-1")

        async def passes(seconds: float) -> None:
            pass

        states = TailerStates(checkpoints, ownership, passes)
        assert await states.forget("orders") == ""
        for source in ("orders/orders-0", "orders/orders-1", NOTES + "orders", ENTRIES + "orders"):
            assert await checkpoints.load(source) == {}
            assert await checkpoints.load(source.replace("orders", "orders-2", 1)) != {}
        assert late is not None
        with pytest.raises(StaleFence):
            await checkpoints.commit("orders/orders-1", late.epoch, {"orders-1": Mark(9)})
        # And the platform's own are not forgotten
        for own in ("due", "@delay"):
            with pytest.raises(InvalidRequest, match="the platform's own"):
                await states.forget(own)
