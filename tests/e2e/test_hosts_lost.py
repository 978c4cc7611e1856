"""Workers on other hosts come in a surge, and a host is lost: how soon work follows, by the journal of functions."""

from __future__ import annotations

import os
import subprocess
import sys
import time
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
FEED = """
import asyncio, sys
import tailrace

async def main(gateway, count, seconds):
    async with tailrace.AsyncClient(gateway, timeout=60) as client:
        for begin in range(0, count, 500):
            some = range(begin, min(count, begin + 500))
            await client.submit_many([tailrace.Call("note_it", n=n, seconds=seconds) for n in some])

asyncio.run(main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3])))
"""


#: Seconds that a machine that does much else may take to hand items out again.
BUSY = 5.0


def lines(site: Site) -> list[tuple[str, int, int, float, str]]:
    """What happened, of which item under which fence, when (CLOCK_MONOTONIC), on which host."""
    text = (site.folder / "journal").read_text() if (site.folder / "journal").exists() else ""
    found = []
    for line in text.splitlines():
        word, n, fence, at, host = line.split()
        found.append((word, int(n), int(fence), float(at), host))
    return found


def until(site: Site, what: str, count: int, host: Host | None = None, patience: float = 90.0) -> None:
    """Waits for so many lines."""
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


def feed(site: Site, count: int, seconds: float) -> None:
    (site.folder / "feed.py").write_text(FEED)
    subprocess.run(
        [*site.one.within, sys.executable, "feed.py", site.gateway, str(count), str(seconds)],
        cwd=site.folder,
        env=environment(site.one, site.folder, site.folder / "fleet" / "client") | {"PATH": os.environ["PATH"]},
        check=True,
        timeout=120,
    )


def test_a_surge_is_followed_by_workers_of_another_host(site: Site) -> None:
    # Given a worker that is busy with a tenth of what waits
    worker(site, site.one, slots=5)
    feed(site, 4000, 0.1)
    until(site, "end", 50)
    # When workers on another host come
    worker(site, site.two, slots=100)
    came = time.monotonic()
    # Then ten seconds later what is done a second is what all of them can do, or nearly
    time.sleep(max(0.0, came + 12 - time.monotonic()))
    window = [line for line in lines(site) if line[0] == "end" and came + 2 <= line[3] < came + 12]
    rates = [sum(came + at <= line[3] < came + at + 2 for line in window) / 2 for at in range(2, 12, 2)]
    print(f"items a second in steps of 2 s after they came: {rates}; all slots: {105 / 0.1:.0f}")
    until(site, "end", 4000)
    last = max(line[3] for line in lines(site) if line[0] == "end")
    assert last - came < 10 + 4000 / (0.5 * 105 / 0.1)


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
    print(f"{len(there)} items of the lost host started again after {late:.1f} s at most")
    sizes = LeaseSizes()
    assert late <= wait_for_worker(sizes, sizes.worker) + BUSY
    # And none ran twice at once: over there it was ended before
    for n in there:
        former = [at for word, m, _, at, host in lines(site) if m == n and host == site.two.name and word == "end"]
        assert not former or max(former) < again[n]
