"""Hosts as namespaces, between which packets pass, late, or not at all."""

from __future__ import annotations

import asyncio
import subprocess
import time
from collections.abc import AsyncIterator

import pytest

from tailrace.bench.faults.host_networks import HostNetworks, NetworkHost
from tailrace.bench.faults.host_wire import APART, DEAF, LAG, LATE, MUTE, HostBreak
from tailrace.model.errors import ConfigError

#: Says each datagram that comes.
HEARS = """
import socket, sys
heard = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
heard.bind((sys.argv[1], 9000))
print("hears", flush=True)
while True:
    print(heard.recv(100).decode(), flush=True)
"""
SAYS = """
import socket, sys
said = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
said.sendto(sys.argv[2].encode(), (sys.argv[1], 9000))
"""


@pytest.fixture
async def networks() -> AsyncIterator[HostNetworks]:
    made = HostNetworks(2)
    try:
        await made.start()
    except ConfigError as error:
        pytest.skip(str(error))
    yield made
    await made.stop()


async def python(host: NetworkHost, text: str, *words: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *host.within, "python3", "-c", text, *words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )


async def test_datagrams_pass_as_the_wire_is(networks: HostNetworks) -> None:
    # Given two hosts that hear each other
    one, two = networks.hosts
    hearing = {host: await python(host, HEARS, host.address) for host in (one, two)}

    async def heard(host: NetworkHost) -> str:
        out = hearing[host].stdout
        assert out is not None
        async with asyncio.timeout(20):
            return (await out.readline()).decode().strip()

    async def say(source: NetworkHost, target: NetworkHost, text: str) -> None:
        await (await python(source, SAYS, target.address, text)).wait()

    try:
        assert [await heard(host) for host in (one, two)] == ["hears", "hears"]
        # When the second one is deaf, mute and apart, then what it would hear, say, or both, is lost
        for number, way in enumerate((DEAF, MUTE, APART)):
            broken = HostBreak(2, way)
            await networks.cut(broken)
            await say(one, two, f"to {number}")
            await say(two, one, f"from {number}")
            await networks.heal(broken)
        await say(one, two, "whole")
        await say(two, one, "whole")
        assert [await heard(two), await heard(two)] == ["to 1", "whole"]
        assert [await heard(one), await heard(one)] == ["from 0", "whole"]
        # And a late one hears later
        await networks.cut(HostBreak(1, LAG))
        before = time.monotonic()
        await say(one, two, "late")
        assert await heard(two) == "late" and time.monotonic() - before >= LATE
    finally:
        for process in hearing.values():
            process.kill()
            await process.wait()


async def test_nothing_of_them_is_left(networks: HostNetworks) -> None:
    # When they are stopped
    await networks.stop()
    # Then neither namespace nor device is there
    for words in (("ip", "netns", "list"), ("ip", "link")):
        said = subprocess.run(words, capture_output=True, text=True, check=True).stdout  # noqa: ASYNC221
        assert not [host.name for host in networks.hosts if host.name in said]
