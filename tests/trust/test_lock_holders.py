"""Functions that keep the interpreter lock, or stop their own process, for longer than a lease: they end, and what ran
beside them is done."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

import pytest

import tailrace
from tailrace.assembly.platform import Platform

FUNCTIONS = """
import asyncio, ctypes, os, re, signal
import tailrace

ONCE_MORE = tailrace.Retry(max_crashes=2)

def began(what):
    descriptor = os.open(os.environ["JOURNAL"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(descriptor, f"{what}\\n".encode())
    os.close(descriptor)

@tailrace.function(retry=ONCE_MORE)
async def keeps_the_lock() -> None:
    began("keeps_the_lock")
    ctypes.PyDLL(None).sleep(20)

@tailrace.function(isolation="process", pool="apart", retry=ONCE_MORE)
def keeps_it_apart() -> None:
    began("keeps_it_apart")
    re.match("(a|aa)+$", "a" * 42 + "b")  # catastrophic: the lock is kept all the time

@tailrace.function(pool="stopping", retry=ONCE_MORE)
def stops_itself() -> None:
    began("stops_itself")
    os.kill(os.getpid(), signal.SIGSTOP)

@tailrace.function
async def innocent(n: int) -> int:
    began(f"innocent {n}")
    await asyncio.sleep(1)
    return n
"""
HOSTILE = ("keeps_the_lock", "keeps_it_apart", "stops_itself")


@pytest.mark.trust(point=7)
async def test_what_keeps_the_lock_beyond_a_lease_is_a_dead_letter_and_its_neighbours_are_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given ten innocents that run in one process with a function that keeps its lock for ten leases, and others like it
    journal = tmp_path / "journal"
    monkeypatch.setenv("JOURNAL", str(journal))
    (tmp_path / "hostile.py").write_text(FUNCTIONS)
    bounds = {"executors": 1, "isolated": 1, "suspects": 2, "slots": 20}
    platform = Platform(tmp_path / "data", [str(tmp_path / "hostile.py")], worker=bounds, heartbeat=0.5)
    await platform.start()
    try:
        async with tailrace.AsyncClient(platform.gateway_address) as client:
            innocents = await client.submit_many([tailrace.Call("innocent", n=n) for n in range(10)])
            hostile = {name: await client.submit(name) for name in HOSTILE}
            # When their leases would be over several times, then each of the hostile ones is a dead letter
            async with asyncio.timeout(30):
                for name, handle in hostile.items():
                    while not (status := await handle.status()).ended:
                        await asyncio.sleep(0.1)
                    assert "its process died while it ran, 2 of 2 times" in status.reason, name
                    assert "interpreter lock" in status.reason, name
                # And the innocents are done
                assert [await handle.result() for handle in innocents] == list(range(10))
    finally:
        await platform.stop()
    # And nothing was tried more often than a suspect is
    begun = Counter(journal.read_text().splitlines())
    assert {begun[name] for name in HOSTILE} == {2}
    assert max(begun[f"innocent {n}"] for n in range(10)) <= 3
