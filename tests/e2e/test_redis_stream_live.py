"""A Redis Stream as the source of a whole platform: failures go round, a kill is lived through, all adds up."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import redis

from tailrace.assembly.platform import Platform
from tailrace.model.audit import Audit
from tailrace.wire.gateway import GatewayClient

FUNCTIONS = str(Path(__file__).parent / "journaled_functions.py")
ITEMS = 300
TAILER = """\
name: payments
source: {kind: redis_stream, url: "%s", streams: [eu, us], payload: {field: body}, timeout: 1s}
function: work
window: {items: 50}
"""


async def test_two_streams_are_run_whole_though_their_server_is_killed(own_redis, tmp_path: Path) -> None:
    # Given two streams of which some items fail their first attempt
    server = own_redis()
    with redis.Redis(port=server.port) as client:
        for number in range(ITEMS):
            body = b'{"fail_first": 1}' if number % 50 == 7 else b'{"seconds": 0.005}'
            client.xadd(("eu", "us")[number % 2], {"body": body})
    (tmp_path / "payments.yaml").write_text(TAILER % server.address)
    journal = tmp_path / "journal"
    platform = Platform(
        tmp_path / "data",
        [FUNCTIONS],
        tailers=[tmp_path / "payments.yaml"],
        heartbeat=0.5,
        environment={"TAILRACE_TEST_JOURNAL": str(journal)},
    )

    def ended() -> list[str]:
        lines = journal.read_text().splitlines() if journal.exists() else []
        return [line.split()[1] for line in lines if line.startswith("end ")]

    try:
        await platform.start()
        async with GatewayClient(platform.gateway_address) as gateway, asyncio.timeout(90):
            # When the server is killed in the middle and comes back
            while len(ended()) < 40:
                await asyncio.sleep(0.02)
            server.program.kill()
            while "cannot be reached" not in (await payments(gateway)).detail:
                await asyncio.sleep(0.05)
            server.program.start()
            # Then each item ends once, none is lost, and nothing is left
            while len(set(ended())) < ITEMS or (await payments(gateway)).lag:
                await asyncio.sleep(0.05)
            audits = await gateway.audit("payments")
            while delayed(audits) < ITEMS // 50:  # the last retries are noted a moment after they ended
                await asyncio.sleep(0.05)
                audits = await gateway.audit("payments")
        assert sorted(ended()) == sorted(set(ended())), "no item ran twice"
        assert [audit.verdict() for audit in audits] == [[], []]
        assert {audit.partition: audit.sum for audit in audits} == {"eu": ITEMS // 2, "us": ITEMS // 2}
        assert delayed(audits) == ITEMS // 50
    finally:
        await platform.stop()


async def payments(gateway: GatewayClient):
    return next(each for each in (await gateway.overview()).tailers if each.name == "payments")


def delayed(audits: Sequence[Audit]) -> int:
    return sum(audit.counts.get("done after a delay", 0) for audit in audits)
