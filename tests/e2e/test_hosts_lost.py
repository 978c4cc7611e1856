"""Workers on other hosts come in a surge, and a host is lost: how soon work follows, by the journal of functions."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from test_hosts import FUNCTIONS, Host, Site, environment, hosts, run, site, two_namespaces

from tailrace.model.lease import LeaseSizes, wait_for_worker

assert hosts and site  # fixtures
pytestmark = [
    pytest.mark.long(minutes=1),
    pytest.mark.timeout(300),
    pytest.mark.parametrize("hosts", [two_namespaces], indirect=True, ids=["two namespaces"]),
]

JOURNALED = (
    FUNCTIONS
    + """
import time

def note(word, n, fence):
    descriptor = os.open("journal", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(descriptor, f"{word} {n} {fence} {time.monotonic():.3f} {os.environ['HOST']}\\n".encode())
    os.close(descriptor)

@tailrace.function(retry=tailrace.Retry(max_crashes=10))
async def note_it(ctx: tailrace.Context, n: int, seconds: float) -> None:
    note("start", n, ctx.fence)
    await asyncio.sleep(seconds)
    note("end", n, ctx.fence)
"""
)
#: Submits what it is told, in one second at most as many as that.
FEED = """
import asyncio, sys, time
import tailrace

async def main(gateway, first, count, seconds, rate):
    began = time.monotonic()
    async with tailrace.AsyncClient(gateway, timeout=60) as client:
        at_once = max(1, min(500, int(rate / 5)))
        for begin in range(0, count, at_once):
            await asyncio.sleep(began + begin / rate - time.monotonic())
            some = range(first + begin, first + min(count, begin + at_once))
            await client.submit_many([tailrace.Call("note_it", n=n, seconds=seconds) for n in some])

asyncio.run(main(sys.argv[1], *map(int, sys.argv[2:4]), *map(float, sys.argv[4:])))
"""


#: Seconds that a machine that does much else may take to hand items out again.
BUSY = 5.0


def lines(site: Site) -> list[tuple[str, int, int, float, str]]:
    """Lines of the journal: the event, the item, its fence, the time (CLOCK_MONOTONIC), and the host."""
    text = (site.folder / "journal").read_text() if (site.folder / "journal").exists() else ""
    found = []
    for line in text.split("\n")[:-1]:  # the last one may be half written
        word, n, fence, at, host = line.split()
        found.append((word, int(n), int(fence), float(at), host))
    return found


def until(site: Site, what: str, count: int, host: Host | None = None, patience: float = 90.0) -> None:
    """Waits for so many lines of the journal."""
    end = time.monotonic() + patience
    while sum(line[0] == what and host in (None, line[4]) for line in ours(site, host)) < count:
        assert time.monotonic() < end, f"no {count} lines of {what}"
        time.sleep(0.05)


def ours(site: Site, host: Host | None) -> list[tuple[str, int, int, float, str]]:
    return [line for line in lines(site) if host is None or line[4] == host.name]


def worker(site: Site, host: Host, slots: int, functions: str = JOURNALED) -> None:
    (site.folder / "tasks.py").write_text(functions)
    config = site.folder / f"config-{host.name}"
    config.mkdir()
    (config / "worker.yaml").write_text(f"slots: {slots}\nexecutors: 1\n")
    words = ("worker", "tasks.py", "--config", str(config), "--gateway", site.gateway, "--scheduler", site.scheduler)
    site.start(host, "worker", *words).said("ready")


@contextmanager
def feeding(site: Site, first: int, count: int, seconds: float, rate: float) -> Iterator[None]:
    """Submits items that take so long, numbered from the first one, so many a second, while the context lasts."""
    (site.folder / "feed.py").write_text(FEED)
    words = (site.gateway, first, count, seconds, rate)
    process = subprocess.Popen(
        [*site.one.within, sys.executable, "feed.py", *map(str, words)],
        cwd=site.folder,
        env=environment(site.one, site.folder, site.folder / "fleet" / "client") | {"PATH": os.environ["PATH"]},
    )
    try:
        yield
        assert process.wait(timeout=120) == 0
    finally:
        process.kill()
        process.wait()


def feed(site: Site, count: int, seconds: float) -> None:
    with feeding(site, 0, count, seconds, rate=100_000):
        pass


#: A worker's slots before the surge; an item takes a second, so as many start in one, and those of the other host.
BEFORE, ADDED = 25, 225


@pytest.mark.parametrize("declares", ["", 'downstreams=["bank"], '], ids=["at once", "slow start of a downstream"])
def test_a_surge_of_ten_times_is_followed_by_workers_of_another_host(site: Site, declares: str) -> None:
    # Given a worker that does what comes
    functions = JOURNALED.replace("function(retry", f"function({declares}retry")
    worker(site, site.one, slots=BEFORE, functions=functions)
    with feeding(site, 0, 4 * BEFORE, seconds=1.0, rate=BEFORE):
        until(site, "end", 2 * BEFORE)
    # When ten times as much comes for twenty seconds, and workers for it on another host
    count = 20 * (BEFORE + ADDED)
    with feeding(site, 4 * BEFORE, count, seconds=1.0, rate=BEFORE + ADDED):
        until(site, "start", 6 * BEFORE)
        started = time.monotonic()
        worker(site, site.two, slots=ADDED, functions=functions)
        ready = time.monotonic()
        until(site, "end", 4 * BEFORE + count)
    # Then within ten seconds as many end in each second as all of them can do, but a tenth
    ends = [line[3] for line in lines(site) if line[0] == "end"]
    rates = [sum(ready + at <= end < ready + at + 1 for end in ends) for at in range(20)]
    followed = next(
        (at / 10 for at in range(200) if rate_from(ends, ready + at / 10) >= 0.9 * (BEFORE + ADDED)), float("inf")
    )
    print(
        f"the workers were ready {ready - started:.1f} s after their start, and did what they can in the second that "
        f"began {followed:.1f} s later; ends in each second since they were ready: {rates}"
    )
    assert followed <= 10
    # And each ran once
    assert len(ends) == len({line[1] for line in lines(site) if line[0] == "end"}) == 4 * BEFORE + count


def rate_from(ends: list[float], at: float) -> int:
    """Number of ends in the second that begins at `at`."""
    return sum(at <= end < at + 1 for end in ends)


def test_what_ran_on_a_lost_host_starts_elsewhere_once_its_lease_is_over(site: Site) -> None:
    # Given items that run on two hosts
    worker(site, site.one, slots=50)
    worker(site, site.two, slots=50)
    feed(site, 60, 8.0)
    until(site, "start", 60)
    there = {line[1] for line in ours(site, site.two) if line[0] == "start"}
    assert there
    # When one of them is cut off for good
    run("ip", "-n", site.two.within[-1], "link", "set", site.two.within[-1], "down")
    cut = time.monotonic()
    # Then each of its items starts on the other one once it cannot run there any more
    end = cut + 60
    while True:
        again = {
            n: at for word, n, _, at, host in lines(site) if word == "start" and host == site.one.name and at > cut
        }
        if there <= again.keys():
            break
        assert time.monotonic() < end, f"{len(there - again.keys())} of {len(there)} never started again"
        time.sleep(0.1)
    late = max(again[n] for n in there) - cut
    print(
        "ALL",
        sorted(round(again[n] - cut, 2) for n in there),
        [line for line in lines(site) if line[4] == site.two.name][:1],
        cut,
    )
    print(f"{len(there)} items of the lost host started again after {late:.1f} s at most")
    sizes = LeaseSizes()
    assert late <= wait_for_worker(sizes, sizes.granted_to_worker) + BUSY
    # And none ran twice at once: over there it was ended before
    for n in there:
        former = [at for word, m, _, at, host in lines(site) if m == n and host == site.two.name and word == "end"]
        assert not former or max(former) < again[n]
