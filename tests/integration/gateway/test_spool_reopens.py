"""A gateway of which the file for its spool fails: it closes and opens again with it, and nothing spooled is lost."""

from __future__ import annotations

import sqlite3
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

import tailrace
from tailrace.assembly.separate import SeparateGateway, SeparateStore
from tailrace.assembly.settings import ConfigDirectory
from tailrace.model.alert import Alert
from tailrace.model.function_spec import FunctionSpec
from tailrace.stores.spool.sqlite import SqliteSpool
from tailrace.wire.gateway import GatewayClient

from ...scenes.lone_node import until


async def test_a_spool_whose_writer_dies_opens_again_with_its_gateway(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a gateway of which the store, apart, is away
    (tmp_path / "gateway.yaml").write_text("store_patience: 300ms\nlook_every: 0\n")
    directory = ConfigDirectory(tmp_path)
    store = SeparateStore(tmp_path / "store", directory, "127.0.0.1:0")
    await store.start()
    gateway = SeparateGateway(store.address, directory, "127.0.0.1:0", data=tmp_path / "gateway")
    async with AsyncExitStack() as ends:
        ends.push_async_callback(gateway.stop)
        await gateway.start()
        operator = await ends.enter_async_context(GatewayClient(gateway.address))
        client = await ends.enter_async_context(tailrace.AsyncClient(gateway.address, timeout=10))
        await operator.register_functions("worker", [FunctionSpec("work")])
        await store.stop()
        before = await client.submit("work", n=1)
        assert before.spooled

        # When what nobody catches ends the writer of what it spools
        add, planted = SqliteSpool._add, iter([True])

        def dies(spool: SqliteSpool, connection: sqlite3.Connection, items: Any, *rest: Any) -> Any:
            if next(planted, False):
                raise SystemExit("planted")
            return add(spool, connection, items, *rest)

        monkeypatch.setattr(SqliteSpool, "_add", dies)
        # Then who submits meanwhile is served all the same, a moment later
        meanwhile = await client.submit("work", n=2)
        assert meanwhile.spooled

        # And operators are told of what failed
        async def told() -> Alert | None:
            return next((each for each in (await operator.overview()).alerts if each.code == "part"), None)

        alert = await until(told)
        assert (alert.subject, "the writer of spool.db" in alert.what) == ("gateway", True)
        # And when the store is back, all that was spooled gets there
        again = SeparateStore(tmp_path / "store", directory, store.address)
        ends.push_async_callback(again.stop)
        await again.start()

        async def brought() -> bool:
            overview = await operator.overview()
            return not overview.spool.items and overview.queue.get("new") == 2

        assert await until(brought)
        assert [(await client.status(each.id)).state for each in (before, meanwhile)] == ["new", "new"]
    # And who closes it all leaves the folder to another process
    with sqlite3.connect(tmp_path / "gateway" / "spool.db", timeout=0) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()
    assert not (tmp_path / "gateway" / "spool.db-wal").exists()
