"""Two whole platforms with their state on one Redis: one of them is killed in the middle of a stream that fails now and
then, and the functions' own journal decides."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest
import redis

from tailrace.assembly.platform import Platform
from tailrace.bench.process import descendants
from tailrace.wire.gateway import GatewayClient

sys.path.insert(0, str(Path(__file__).parent))
from journal import judge

FUNCTIONS = str(Path(__file__).parent / "journaled_functions.py")
ITEMS = 400
STORES = """\
state: {engine: redis, url: "%(url)s"}
queue: {engine: redis, url: "%(url)s"}
delay_log: {engine: redis, url: "%(url)s"}
"""
TAILER = """\
name: payments
source: {kind: redis_stream, url: "%(url)s", streams: [payments], payload: {field: body}}
function: work
window: {items: 50}
"""


def kill_whole(platform: Platform) -> None:
    """Kills all processes of a platform at once, as when their machine goes."""
    pids = list(platform.pids().values())
    for each in {*pids, *(child for pid in pids for child in descendants(pid))}:
        os.kill(each, signal.SIGKILL)


@pytest.mark.long(minutes=0.5)
async def test_what_one_platform_leaves_when_it_is_killed_the_other_ends(own_redis, tmp_path: Path) -> None:
    # Given two platforms of one stream, of which some items fail their first attempt; the first one owns it
    server = own_redis()
    (tmp_path / "config" / "tailers").mkdir(parents=True)
    (tmp_path / "config" / "stores.yaml").write_text(STORES % {"url": server.address})
    (tmp_path / "config" / "tailers" / "payments.yaml").write_text(TAILER % {"url": server.address})
    journal = tmp_path / "journal"
    platforms = [
        Platform(
            tmp_path / name,
            [FUNCTIONS],
            config=tmp_path / "config",
            heartbeat=0.5,
            environment={"TAILRACE_TEST_JOURNAL": str(journal)},
        )
        for name in ("one", "two")
    ]

    def lines() -> list[str]:
        return journal.read_text().splitlines() if journal.exists() else []

    def ended() -> set[str]:
        return {line.split()[1] for line in lines() if line.startswith("end ")}

    try:
        for platform in platforms:
            await platform.start()
        with redis.Redis(port=server.port) as client:
            for number in range(ITEMS):
                body = b'{"fail_first": 1}' if number % 20 == 7 else b'{"seconds": 0.1}'
                client.xadd("payments", {"body": body})
        async with GatewayClient(platforms[1].gateway_address) as gateway, asyncio.timeout(120):
            # When the one that owns the stream is killed whole
            while len(ended()) < ITEMS // 4:
                await asyncio.sleep(0.02)
            kill_whole(platforms[0])
            assert len(ended()) < ITEMS
            await platforms[0].stop()
            # Then the other ends all of it, what was waiting for its retry too
            while len(ended()) < ITEMS:
                await asyncio.sleep(0.05)
            # And it is known to have the stream, once what the killed one said last is forgotten
            states: list[str] = []
            while states != ["running"]:
                await asyncio.sleep(0.05)
                states = [each.state for each in (await gateway.overview()).tailers if each.name == "payments"]
            audits = await gateway.audit("payments")
            while [audit.good for audit in audits] != [True]:
                await asyncio.sleep(0.05)
                audits = await gateway.audit("payments")
            assert audits[0].sum == ITEMS
    finally:
        for platform in platforms:
            await platform.stop()
    verdict = judge(lines())
    assert len(verdict.ended) == ITEMS
    assert not verdict.overlaps
