"""Words of a node about a Redis that is configured in a way that it cannot work with."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest
import redis
from scenes import commands

import tailrace
from tailrace.assembly.platform import Platform
from tailrace.wire.gateway import GatewayClient

pytestmark = pytest.mark.trust(point=19)


def test_parameters_of_a_url_that_the_product_relies_on_are_refused_by_name(own_redis, tmp_path: Path) -> None:
    # Given servers that are there, with parameters in their URLs that change how they answer
    url = own_redis().address
    (tmp_path / "stores.yaml").write_text(
        f'queue: {{engine: redis, url: "{url}?decode_responses=yes"}}\n'
        f'state: {{engine: redis, url: "{url}?protocol=3"}}\n'
        f'delay_log: {{engine: redis, url: "{url}?socket_timeout=1"}}\n'
    )
    # When a node starts, then it names each of them, and what to write instead
    told = commands.tailrace("node", "--config", str(tmp_path), "--data", str(tmp_path / "data"), timeout=40)
    assert told.returncode
    for words in ("decode_responses", "protocol", "socket_timeout", "`timeout`"):
        assert words in told.stderr, told.stderr
    assert "Traceback" not in told.stderr


async def test_the_rights_that_the_page_names_are_enough(own_redis, tmp_path: Path) -> None:
    # Given a user with the rights that docs/redis.md names for a state and a delay log
    server = own_redis()
    page = (Path(tailrace.__file__).parent / "docs" / "redis.md").read_text()
    named = re.search(r"`ACL SETUSER node on >… ([^`]*)`", page)
    rights = named[1] if named else "~{tailrace}:* +@read +@write +@scripting +info +ping +config|get"  # as it was
    with redis.Redis(port=server.port) as client:
        client.execute_command("ACL", "SETUSER", "node", "on", ">secret", *rights.split())
    url = f"redis://node:secret@127.0.0.1:{server.port}/0"
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "stores.yaml").write_text(
        "".join(f'{store}: {{engine: redis, url: "{url}"}}\n' for store in ("state", "delay_log"))
    )
    platform = Platform(tmp_path / "data", config=tmp_path / "config", heartbeat=0.3)
    try:
        await platform.start()
        with redis.Redis(port=server.port) as client:
            async with GatewayClient(platform.gateway_address) as gateway:
                # When a node works with it, then it is refused nothing
                refused = client.execute_command("ACL", "LOG")
                assert not refused, refused
                # (a machine that is busy may have something to say while it starts)
                async with asyncio.timeout(20):
                    while alerts := (await gateway.overview()).alerts:
                        assert not any("NOPERM" in each.what for each in alerts), alerts
                        await asyncio.sleep(0.1)
            assert client.execute_command("ACL", "LOG") == []
            assert client.exists("tailrace:{log}") and client.exists("{tailrace}:state:home")
    finally:
        await platform.stop()


async def test_a_key_that_a_user_may_not_touch_is_named(own_redis, tmp_path: Path) -> None:
    # Given a user who may do all that a queue and a state need, and nothing with the keys of the delay log
    server = own_redis()
    with redis.Redis(port=server.port) as client:
        client.execute_command("ACL", "SETUSER", "node", "on", ">secret", "~{tailrace}:*", "&*", "+@all")
    url = f"redis://node:secret@127.0.0.1:{server.port}/0"
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "stores.yaml").write_text(
        "".join(f'{store}: {{engine: redis, url: "{url}"}}\n' for store in ("queue", "state", "delay_log"))
    )
    platform = Platform(tmp_path / "data", config=tmp_path / "config", heartbeat=0.3)
    try:
        await platform.start()
        async with GatewayClient(platform.gateway_address) as gateway, asyncio.timeout(30):
            # When its tailers run into that, then operators hear which keys it is about
            said: set[str] = set()
            while not any("may not do that" in what for what in said):
                await asyncio.sleep(0.1)
                overview = await gateway.overview()
                said |= {each.what for each in overview.alerts} | {each.detail for each in overview.tailers}
        assert all("tailrace:{log" in what for what in said if "may not do that" in what), said
    finally:
        await platform.stop()
