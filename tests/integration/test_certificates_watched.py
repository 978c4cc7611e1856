"""Certificates of a running part: their faults are alerts, and metrics beyond loopback are for certificates of the
fleet."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from scenes.fleet import DAY, Fleet
from scenes.lone_node import node, until

from tailrace.assembly import certificate_watch
from tailrace.foundation import certificates
from tailrace.foundation.clock import SYSTEM_CLOCK, Clock
from tailrace.foundation.metrics_server import MetricsServer
from tailrace.foundation.peer_check import GRANTS
from tailrace.model.errors import ConfigError
from tailrace.model.grants import read_grants
from tailrace.model.metrics import Sample
from tailrace.testing.clock import ManualClock
from tailrace.wire.gateway import GatewayClient


@pytest.fixture
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fleet:
    return Fleet(tmp_path / "fleet", monkeypatch)


async def test_broken_files_and_an_end_that_is_near_are_alerts(
    fleet: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(certificate_watch, "LOOK", 0.05)
    monkeypatch.setattr(certificates, "LOOK", 0.05)
    mine = fleet.issue("node", ago=27, days=30)
    with fleet.as_(mine):
        async with node(tmp_path) as running, GatewayClient(running.addresses["gateway"]) as operator:

            async def said(text: str) -> bool:
                return any(text in each.what for each in (await operator.overview()).alerts)

            # Given a certificate with a tenth of its time left
            await until(lambda: said("auth renew"))
            # When it is renewed
            fleet.issue("node", days=90)

            async def well() -> bool:
                return not await said("auth renew")

            await until(well)
            # When its key is another one's, then that is said, and it goes on
            (mine / "tls.key").write_bytes((fleet.issue("worker") / "tls.key").read_bytes())
            await until(lambda: said("The former certificates stay in force"))


async def samples() -> list[Sample]:
    return []


async def scrape(address: str, mine: Path | None, authority: Path) -> tuple[int, str]:
    context = ssl.create_default_context(cafile=str(authority))
    if mine is not None:
        context.load_cert_chain(mine / "tls.crt", mine / "tls.key")
    url = f"https://{address.removeprefix('tls:')}/metrics"
    async with aiohttp.ClientSession() as session, session.get(url, ssl=context) as answer:
        return answer.status, await answer.text()


async def test_metrics_beyond_loopback_are_for_certificates_of_the_fleet(fleet: Fleet) -> None:
    server = MetricsServer("tls:127.0.0.1:0", samples)
    with fleet.as_(None), pytest.raises(ConfigError, match="without certificates only loopback"):
        await server.start()
    with fleet.as_(fleet.issue("node")):
        await server.start()
    authority = fleet.folder / "ca.crt"
    try:
        assert (await scrape(server.address, fleet.issue("operator"), authority))[0] == 200
        status, said = await scrape(server.address, fleet.issue("worker"), authority)
        assert status == 403 and "worker x of fleet f1 may not call Metrics/Scrape" in said
        with pytest.raises((aiohttp.ClientError, ssl.SSLError)):
            await scrape(server.address, None, authority)
        # When the server's certificate changes, the next scrape is made with it
        before = server.address
        fleet.issue("node", hosts=("10.9.9.9",))
        async with asyncio.timeout(10):
            while "10.9.9.9" not in await hosts(server.address, fleet.issue("operator"), authority):
                await asyncio.sleep(0.1)
        assert server.address == before
    finally:
        await server.stop()


@contextlib.asynccontextmanager
async def scraped(fleet: Fleet, clock: Clock = SYSTEM_CLOCK) -> AsyncIterator[tuple[MetricsServer, Path]]:
    """A listener for scrapes, and the folder of its certificates."""
    server, mine = MetricsServer("tls:127.0.0.1:0", samples, clock), fleet.issue("node")
    with fleet.as_(mine):
        await server.start()
    try:
        yield server, mine
    finally:
        await server.stop()


@contextlib.asynccontextmanager
async def kept(server: MetricsServer, mine: Path, authority: Path) -> AsyncIterator[Callable[[], Awaitable[Any]]]:
    """Yields a function that scrapes over one connection, and returns status and text."""
    context = ssl.create_default_context(cafile=str(authority))
    context.load_cert_chain(mine / "tls.crt", mine / "tls.key")
    url = f"https://{server.address.removeprefix('tls:')}/metrics"
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=1)) as session:

        async def once() -> tuple[int, str]:
            async with session.get(url, ssl=context) as answer:
                return answer.status, await answer.text()

        yield once


async def test_a_scrape_of_another_fleet_of_the_same_authority_is_refused(fleet: Fleet) -> None:
    async with scraped(fleet) as (server, _):
        fleet.authority.fleet = "f2"
        status, said = await scrape(server.address, fleet.issue("client", "eve"), fleet.folder / "ca.crt")
        assert status == 403 and "client eve of fleet f2 is of another fleet: this is node x of fleet f1" in said


async def test_a_scrape_needs_the_right_to_read_all_where_somebody_gave_rights(fleet: Fleet) -> None:
    given = GRANTS.set(
        read_grants({"client/shop": ["submit:send_email@acme", "read:send_email@acme"], "client/prom-*": ["read"]})
    )
    try:
        async with scraped(fleet) as (server, _):
            authority = fleet.folder / "ca.crt"
            status, said = await scrape(server.address, fleet.issue("client", "shop"), authority)
            assert status == 403 and "client shop of fleet f1 may not do this: it needs the right read, and has" in said
            for name in ("prom-1", "other"):
                assert (await scrape(server.address, fleet.issue("client", name), authority))[0] == 200
    finally:
        GRANTS.reset(given)


async def test_a_connection_that_is_kept_is_held_against_the_clock_and_the_list(fleet: Fleet) -> None:
    clock, authority = ManualClock(wall=SYSTEM_CLOCK.wall()), fleet.folder / "ca.crt"
    async with scraped(fleet, clock) as (server, _):
        # Given two who scrape over connections of theirs
        short, other = fleet.issue("client", "short", days=1), fleet.issue("client", "other", days=30)
        async with kept(server, short, authority) as first, kept(server, other, authority) as second:
            assert (await first())[0] == (await second())[0] == 200
            # When the certificate of one ends, Then it is refused over the connection that is there
            clock.advance(2 * DAY)
            status, said = await first()
            assert status == 403 and "the certificate of client short of fleet f1 expired at" in said
            assert (await second())[0] == 200
            # When that of the other one is revoked, Then so is it
            fleet.authority.revoke("client-other", SYSTEM_CLOCK.wall())
            async with asyncio.timeout(10):
                while (answer := await second())[0] == 200:
                    await asyncio.sleep(0.05)
            assert answer[0] == 403 and "the certificate of client other of fleet f1 was revoked" in answer[1]


async def test_a_connection_of_an_authority_that_is_trusted_no_longer_is_over(
    fleet: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a listener that trusts two authorities, and somebody of each who scrapes over a connection
    other = Fleet(tmp_path / "other", monkeypatch, "f1")
    async with scraped(fleet) as (server, mine):
        both = [each.folder / "ca.crt" for each in (fleet, other)]
        (mine / "ca.crt").write_bytes(b"".join(each.read_bytes() for each in both))
        old, new = other.issue("client", "old"), fleet.issue("client", "new")

        async def taken() -> bool:
            try:
                return (await scrape(server.address, old, both[0]))[0] == 200
            except (aiohttp.ClientError, ssl.SSLError):
                return False

        await until(taken)
        async with kept(server, old, both[0]) as first, kept(server, new, both[0]) as second:
            assert (await first())[0] == (await second())[0] == 200
            # When one of them is trusted no longer
            (mine / "ca.crt").write_bytes(both[0].read_bytes())
            async with asyncio.timeout(10):
                while (answer := await first())[0] == 200:
                    await asyncio.sleep(0.05)
            # Then that connection is over, and its caller makes no other one; the other one connects anew
            assert answer[0] == 403 and "have changed since this connection was made: connect again" in answer[1]
            with pytest.raises((aiohttp.ClientError, ssl.SSLError)):
                await first()
            assert [(await second())[0] for _ in range(2)] == [403, 200]


async def hosts(address: str, mine: Path, authority: Path) -> str:
    """The hosts in the certificate that a server shows."""
    context = ssl.create_default_context(cafile=str(authority))
    context.load_cert_chain(mine / "tls.crt", mine / "tls.key")
    host, port = address.removeprefix("tls:").split(":")
    _, writer = await asyncio.open_connection(host, int(port), ssl=context)
    try:
        return str(writer.get_extra_info("peercert"))
    finally:
        writer.close()
