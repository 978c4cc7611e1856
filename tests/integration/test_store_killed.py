"""A gateway whose queue is on a real PostgreSQL that is killed: workloads submitted meanwhile are in the queue at
last."""

from __future__ import annotations

import asyncio
from pathlib import Path

import tailrace
from tailrace.assembly.embedded import EmbeddedStores
from tailrace.assembly.environments import gateway_stores
from tailrace.assembly.spool_file import SpoolFile
from tailrace.gateway.config import GatewayConfig
from tailrace.gateway.server import GatewayServer
from tailrace.model.function_spec import FunctionSpec
from tailrace.stores.config import StoresConfig


async def test_submissions_are_accepted_while_the_server_is_down_and_none_is_lost(own_postgres, tmp_path: Path) -> None:
    # Given a gateway whose queue is on a server of its own
    server = own_postgres()
    config = GatewayConfig(listen="127.0.0.1:0", store_patience=1.0)
    spool = SpoolFile(tmp_path, config, own=False)
    stores = EmbeddedStores(tmp_path, StoresConfig(queue={"engine": "postgres", "url": server.address}))
    async with stores:
        await spool.start()
        await stores.control.register([FunctionSpec("work")])
        gateway = GatewayServer(config, gateway_stores(stores, spool))
        await gateway.start()
        async with tailrace.AsyncClient(gateway.address, timeout=10) as client:
            before = [await client.submit("work", n=number) for number in range(5)]
            # When that is killed, and many submit meanwhile
            server.program.kill()
            meanwhile = await asyncio.gather(*(client.submit("work", n=number) for number in range(5, 200)))
            meanwhile += await client.submit_many(tailrace.Call("work", n=number) for number in range(200, 1200))
            # Then all is accepted, and says that it is spooled
            assert not any(handle.spooled for handle in before)
            assert all(handle.spooled for handle in meanwhile)
            # And when it is back, every one is in the queue, once
            server.program.start()
            async with asyncio.timeout(60):
                while (await client.status(meanwhile[-1].id)).state == "spooled":
                    await asyncio.sleep(0.05)
            assert server.run("SELECT count(*) FROM tailrace.tasks") == [(1200,)]
            assert server.run("SELECT count(DISTINCT id) FROM tailrace.tasks") == [(1200,)]
        await gateway.stop()
        await spool.stop()
