"""Certificates of a running part: what is wrong with them is an alert, and metrics of others are for the fleet."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import aiohttp
import pytest
from scenes.fleet import Fleet
from scenes.lone_node import node, until

from tailrace.assembly import certificate_watch
from tailrace.foundation import certificates
from tailrace.foundation.metrics_server import MetricsServer
from tailrace.model.errors import ConfigError
from tailrace.model.metrics import Sample
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
