"""`tailrace bench --scenario host_faults`, as a user would run it: three hosts that speak TLS, and between them a wire
that loses packets, delays them, or passes them one way only, while processes on the hosts are killed.

`TAILRACE_HOST_FAULTS=20000,100` (items, faults) makes the long ones as long as the runs in docs/runs.md.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from servers import none_to_be_had
from test_bench_faults import bench

from tailrace.bench.faults.host_networks import HostNetworks
from tailrace.model.errors import ConfigError

ITEMS, FAULTS = (int(each) for each in os.environ.get("TAILRACE_HOST_FAULTS", "500,5").split(","))
#: Minutes of one long run: a fault takes about five seconds, and what comes before and after half a minute.
MINUTES = round(0.15 + FAULTS / 12, 1)


@pytest.fixture(autouse=True)
def networks() -> None:
    async def made() -> None:
        hosts = HostNetworks(1)
        await hosts.start()
        await hosts.stop()

    try:
        asyncio.run(made())
    except ConfigError as error:
        pytest.skip(str(error))


@pytest.fixture
def folder() -> Iterator[Path]:
    # PostgreSQL runs as another user, whom neither pytest's own folders let pass nor this one by itself
    with tempfile.TemporaryDirectory(prefix="tailrace-faults-") as folder:
        Path(folder).chmod(0o711)
        yield Path(folder)


def test_wires_between_hosts_break_under_load_and_nothing_is_lost_or_twice_at_once(folder: Path) -> None:
    # When one host is not heard, an executor is killed, and another host hears nobody
    options = ("--scenario", "host_faults", "--items", "300", "--faults", "3", "--seed", "8")
    figures = bench(folder, 170, *options)
    # Then everything ended as it had to
    assert set(figures["by_kind"]) == {"mute host", "kill executor", "deaf host"}
    assert figures["completed"] + figures["dead_letters"] == figures["items"] >= 300


@pytest.mark.long(minutes=MINUTES)
@pytest.mark.parametrize("engine", ["postgres", "redis"])
def test_hosts_break_around_a_queue_on_a_server(folder: Path, engine: str) -> None:
    if engine == "redis" and shutil.which("redis-server") is None:
        none_to_be_had("a Redis that is killed", "install redis-server")
    options = ("--scenario", "host_faults", "--engine", engine, "--items", str(ITEMS), "--faults", str(FAULTS))
    figures = bench(folder, 1700, *options, "--seed", "7")
    assert figures["faults"] == FAULTS
    assert figures["by_kind"]["kill server"]["faults"] >= FAULTS // 5
    assert figures["completed"] + figures["dead_letters"] == figures["items"] >= ITEMS
