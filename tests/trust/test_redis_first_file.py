"""A Redis whose append-only file was switched on a moment ago: its first one counts only once it is whole."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
import redis

import tailrace
from tailrace.assembly.platform import Platform
from tailrace.wire.gateway import GatewayClient

pytestmark = pytest.mark.trust(point=4)


async def test_nothing_is_promised_while_the_first_append_only_file_is_written(own_redis, tmp_path: Path) -> None:
    # Given a server in use that gets an append-only file, of which the first one takes long to write
    server = own_redis("--appendonly", "no", "--rdb-key-save-delay", "1000000")
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "stores.yaml").write_text(f'queue: {{engine: redis, url: "{server.address}"}}\n')
    (tmp_path / "functions.py").write_text(
        "import tailrace\n\n@tailrace.function\nasync def work() -> str:\n    return 'done'\n"
    )

    def configure(**settings: str) -> None:
        with redis.Redis(port=server.port) as client:
            for name, value in settings.items():
                client.config_set(name.replace("_", "-"), value)

    with redis.Redis(port=server.port) as client:
        client.mset({f"key:{number}": "value" for number in range(1000)})
    configure(appendonly="yes")
    platform = Platform(tmp_path / "data", [str(tmp_path / "functions.py")], config=tmp_path / "config", heartbeat=0.3)
    try:
        await platform.start()
        async with (
            tailrace.AsyncClient(platform.gateway_address) as client,
            GatewayClient(platform.gateway_address) as gateway,
            asyncio.timeout(60),
        ):
            # When a workload is accepted meanwhile, and the server dies
            accepted = await client.submit("work", delay="3s")
            said = [each.what for each in (await gateway.overview()).alerts]
            server.program.kill()
            server.program.start()
            configure(rdb_key_save_delay="0", appendonly="yes")
            # Then it is not lost: it was still with the gateway, and runs once the first file is whole
            assert await client.result(accepted.id, timeout=40) == "done"
            # And an alert said why it was not in the store
            assert any("append-only file" in what for what in said), said
    finally:
        await platform.stop()
