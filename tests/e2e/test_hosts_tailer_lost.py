"""A host with a worker and with the tailers of a stream and a queue is lost: how soon work goes on elsewhere, by the
journal of functions. Nothing is lost, and nothing runs twice at once."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from test_hosts import FUNCTIONS, Host, Site, environment, hosts, run, site, two_namespaces
from test_hosts_lost import BUSY, feed, lines, until, worker

from tailrace.model.lease import LeaseSizes, wait_for_source

assert hosts and site  # fixtures
pytestmark = [
    pytest.mark.long(minutes=1.2),
    pytest.mark.timeout(300),
    pytest.mark.parametrize("hosts", [two_namespaces], indirect=True, ids=["two namespaces"]),
]

TICKING = (
    FUNCTIONS
    + """
import time

def note(word, n, fence):
    descriptor = os.open("journal", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(descriptor, f"{word} {n} {fence} {time.monotonic():.3f} {os.environ['HOST']}\\n".encode())
    os.close(descriptor)

@tailrace.function(retry=tailrace.Retry(max_crashes=10), timeout="90s")
async def note_it(ctx: tailrace.Context, n: int, seconds: float) -> None:
    note("start", n, ctx.fence)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        await asyncio.sleep(0.2)
        note("tick", n, ctx.fence)
    note("end", n, ctx.fence)
"""
)
APPEND = """
import asyncio, json, sys
from tailrace.stores.log.log import Record
from tailrace.stores.remote import RemoteLog

async def main(store, first, count, seconds):
    log = RemoteLog(store)
    await log.create("logged", 1)
    payloads = [json.dumps({"n": first + n, "seconds": seconds}).encode() for n in range(count)]
    await log.append("logged", 0, [Record(payload, "", (("function", "note_it"),)) for payload in payloads])
    await log.close()

asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])))
"""
STREAM = "name: logged\nsource: {kind: log, stream: logged}\nfunction: {header: function}\nwindow: {items: 60}\n"
#: Items of the queue, of the stream, and seconds that each runs.
QUEUED, LOGGED, LASTING = 60, 20, 6.0


class RunSeen(NamedTuple):
    """One execution: when it began, its last sign of life, where, and whether it ended of itself."""

    start: float
    last: float
    host: str
    ended: bool


def runs(site: Site) -> dict[int, list[RunSeen]]:
    """The executions of each item, in order."""
    found: dict[tuple[int, int, str], list[tuple[str, float]]] = defaultdict(list)
    for word, n, fence, at, host in lines(site):
        found[n, fence, host].append((word, at))
    executions = defaultdict(list)
    for (n, _, host), said in found.items():
        ended = any(word == "end" for word, _ in said)
        executions[n].append(RunSeen(min(at for _, at in said), max(at for _, at in said), host, ended))
    return {n: sorted(each) for n, each in executions.items()}


def append(site: Site, first: int, count: int, seconds: float) -> None:
    (site.folder / "append.py").write_text(APPEND)
    subprocess.run(
        [*site.one.within, sys.executable, "append.py", store_of(site), str(first), str(count), str(seconds)],
        cwd=site.folder,
        env=environment(site.one, site.folder, site.folder / "fleet" / "node"),
        check=True,
        timeout=60,
    )


def store_of(site: Site) -> str:
    return f"{site.one.listen}:8790"


def tailers(site: Site, host: Host, *files: str) -> None:
    """A process of tailers of these files."""
    parts = ("--store", store_of(site), "--delay", f"{site.one.listen}:8789", "--scheduler", site.scheduler)
    site.start(host, "tailer", "tailer", "run", *files, *parts).said("ready")


def cable(site: Site, state: str) -> None:
    """Sets the state of the second host's cable."""
    run("ip", "-n", site.two.within[-1], "link", "set", site.two.within[-1], state)


def later(seen: Iterable[float], cut: float) -> str:
    waited = sorted(at - cut for at in seen)
    return f"{len(waited)} after {waited[0]:.1f} to {waited[-1]:.1f} s" if waited else "none"


def test_what_a_lost_hosts_tailers_had_starts_elsewhere_once_their_leases_are_over(site: Site) -> None:
    # Given a host with a worker, and with tailers that own a stream and have claimed all of the queue
    (site.folder / "logged.yaml").write_text(STREAM)
    append(site, 1000, 1, 0.1)
    worker(site, site.one, 80, TICKING)
    worker(site, site.two, 80, TICKING)
    tailers(site, site.two, "queue.yaml", "logged.yaml")
    until(site, "end", 1)
    tailers(site, site.one, "logged.yaml")
    append(site, 1001, LOGGED, LASTING)
    first = site.parts[4].process  # the first host's own tailer of the queue
    first.send_signal(signal.SIGSTOP)
    try:
        feed(site, QUEUED, LASTING)
        until(site, "start", 1 + LOGGED + QUEUED)
    finally:
        first.send_signal(signal.SIGCONT)
    # When it is cut off for good, while what both tailers handed out runs on both hosts
    cable(site, "down")
    cut = time.monotonic()
    running = {n for n, each in runs(site).items() if not each[-1].ended}
    assert any(runs(site)[n][-1].host == site.two.name for n in running)
    # Then everything that ran there, or whose outcome could not be told to who had it, starts elsewhere or had ended
    lease = wait_for_source(LeaseSizes())
    lost = {n for n in running if runs(site)[n][-1].host == site.two.name}
    end = cut + lease + 30
    while lost - {n for n, each in runs(site).items() if each[-1].host == site.one.name and each[-1].ended}:
        assert time.monotonic() < end, "not all of them have ended elsewhere"
        time.sleep(0.2)
    # (whatever else would run again has begun by then)
    time.sleep(max(0.0, cut + lease + BUSY - time.monotonic()))
    found = runs(site)
    again = {n: each[-1].start for n, each in found.items() if len(each) > 1 and each[-1].start > cut}
    queued = [at for n, at in again.items() if n < 1000]
    logged = [at for n, at in again.items() if n >= 1000]
    print(f"asked: {lease + 2:.1f} s; of the queue {later(queued, cut)}; of the stream {later(logged, cut)}")
    assert lost <= again.keys()
    assert max(again.values()) - cut <= lease + BUSY
    # And none is lost, and none ran twice at once
    assert len(found) == 1 + LOGGED + QUEUED
    assert all(any(each.ended for each in executions) for executions in found.values())
    assert not [n for n, each in found.items() for one, two in pairwise(each) if two.start < one.last]
    # And the stream goes on
    append(site, 2000, 1, 0.1)
    cable(site, "up")  # so that what is there ends soon
    deadline = time.monotonic() + 30
    while 2000 not in runs(site):
        assert time.monotonic() < deadline, "the stream stands still"
        time.sleep(0.1)
