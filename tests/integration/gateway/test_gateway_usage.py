"""Usage over a gateway: told by schedulers, summed for operators."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tailrace.assembly.embedded import EmbeddedStores
from tailrace.assembly.environments import gateway_stores
from tailrace.assembly.reports import Reporting, TellingUsage
from tailrace.foundation.clock import SYSTEM_CLOCK
from tailrace.gateway.config import GatewayConfig
from tailrace.gateway.server import GatewayServer
from tailrace.model.errors import InvalidRequest
from tailrace.model.usage import HOUR, KEPT_HOURS, REPORT_ROWS, UsageReport, UsageRow, UsageSum
from tailrace.testing.clock import ManualClock
from tailrace.wire.gateway import GatewayClient

CONFIG = GatewayConfig.model_validate({"listen": "127.0.0.1:0"})
NOW = int(SYSTEM_CLOCK.wall()) // HOUR


async def test_usage_is_summed_by_what_was_asked_for(tmp_path: Path) -> None:
    async with EmbeddedStores(tmp_path) as stores:
        running = GatewayServer(CONFIG, gateway_stores(stores))
        await running.start()
        rows = [
            UsageRow(NOW - 1, "mail", "a", "smtp,stripe", 3, 30),
            UsageRow(NOW, "mail", "a", "smtp,stripe", 1, 10),
            UsageRow(NOW, "mail", "b", "smtp", 2, 20),
            UsageRow(NOW, "add", "", "", 5, 5),
        ]
        async with GatewayClient(running.address) as client:
            assert await client.tell_usage(UsageReport("s", 1, rows))
            assert not await client.tell_usage(UsageReport("s", 1, rows))
            ask = (NOW - 1, NOW + 1)
            assert await client.usage(*ask, ["function"]) == [
                UsageSum(0, "add", "", "", 5, 5),
                UsageSum(0, "mail", "", "", 6, 60),
            ]
            assert await client.usage(*ask, ["downstream"]) == [
                UsageSum(0, "", "", "", 5, 5),
                UsageSum(0, "", "", "smtp", 6, 60),
                UsageSum(0, "", "", "stripe", 4, 40),
            ]
            assert await client.usage(*ask, ["hour"], tenant="a") == [
                UsageSum(NOW - 1, "", "", "", 3, 30),
                UsageSum(NOW, "", "", "", 1, 10),
            ]
            assert await client.usage(*ask, ["tenant"], "mail", downstream="stripe") == [
                UsageSum(0, "", "a", "", 4, 40)
            ]
            assert await client.usage(NOW + 1, NOW + 2, ["hour"]) == []
        await running.stop()


async def test_what_cannot_be_right_is_refused_and_odd_names_are_cut(tmp_path: Path) -> None:
    async with EmbeddedStores(tmp_path) as stores:
        # Given a gateway whose hour is this one, however long ago it was that the tests were read
        running = GatewayServer(CONFIG, gateway_stores(stores), clock=ManualClock(wall=NOW * HOUR + 60.0))
        await running.start()
        row = UsageRow(NOW, "f", "", "", 1, 1)
        async with GatewayClient(running.address) as client:
            for wrong in (
                UsageReport("", 1, [row]),
                UsageReport("s", 0, [row]),
                UsageReport("s", 1, [row] * (REPORT_ROWS + 1)),
                UsageReport("s", 1, [row._replace(items=-1)]),
            ):
                with pytest.raises(InvalidRequest):
                    await client.tell_usage(wrong)
            with pytest.raises(InvalidRequest, match="at most 24"):
                await client.usage(0, 25, ["hour"])
            with pytest.raises(InvalidRequest, match="by 'colour'"):
                await client.usage(0, 1, ["colour"])
            odd = [
                row._replace(tenant="\u00e9\0" * 500),
                row._replace(hour=NOW + 9999, tenant="ahead"),
                row._replace(hour=NOW - KEPT_HOURS - 5, tenant="long ago"),
            ]
            assert await client.tell_usage(UsageReport("s", 1, odd))
            found = await client.usage(NOW, NOW + 2, ["hour", "tenant"])
            assert [(each.hour, len(each.tenant)) for each in found] == [(NOW, 200), (NOW + 1, 5)]
            assert await stores.usage.hours() == [NOW, NOW + 1]
        await running.stop()


async def test_a_gateway_without_a_store_of_usage_says_so(tmp_path: Path) -> None:
    async with EmbeddedStores(tmp_path) as stores:
        running = GatewayServer(CONFIG, replace(gateway_stores(stores), usage=None))
        await running.start()
        async with GatewayClient(running.address) as client:
            with pytest.raises(InvalidRequest, match="no store of usage"):
                await client.usage(0, 1, ["hour"])
        await running.stop()


async def test_a_report_that_nobody_answered_is_told_again_and_the_last_one_when_it_stops(tmp_path: Path) -> None:
    # Given a scheduler with a report, and a gateway that is away
    rows = [UsageRow(NOW, "f", "", "", 1, 1)]
    waiting = {1: rows, 2: rows}
    done: list[int] = []

    def report() -> UsageReport | None:
        number = min(waiting, default=0)
        return UsageReport("s", number, waiting[number]) if number else None

    def accepted(number: int) -> None:
        done.append(number)
        del waiting[number]

    async with EmbeddedStores(tmp_path) as stores:
        running = GatewayServer(CONFIG, gateway_stores(stores))
        await running.start()
        address = running.address
        await running.stop()
        part = TellingUsage(address, lambda: Reporting(lambda: None, report, accepted), every=3600.0)
        await part.start()
        await part.stop()
        assert done == []
        # When it is back
        await running.start()
        await part.start()
        await part.stop()
        # Then both arrived, once
        assert done == [1, 2]
        assert [row.items for row in await stores.usage.of_hour(NOW)] == [2]
        await running.stop()


async def test_a_clock_that_is_ahead_for_a_moment_makes_no_hour_old(tmp_path: Path) -> None:
    clock = ManualClock(wall=NOW * HOUR + 60.0)
    async with EmbeddedStores(tmp_path, clock=clock) as stores:
        running = GatewayServer(CONFIG, gateway_stores(stores), clock=clock)
        await running.start()
        async with GatewayClient(running.address) as client:
            # Given usage of an hour
            assert await client.tell_usage(UsageReport("s", 1, [UsageRow(NOW, "f", "", "", 1, 1)]))
            # When more of it is told while the clock is a year ahead, and when it is right again
            clock.jump(366 * 24.0 * HOUR)
            assert await client.tell_usage(UsageReport("s", 2, [UsageRow(NOW, "f", "", "", 2, 2)]))
            clock.jump(-366 * 24.0 * HOUR)
            # Then all of it is there
            [row] = await client.usage(NOW, NOW + 1, ["function"])
            assert row.items == 3
        await running.stop()
