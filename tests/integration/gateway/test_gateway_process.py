"""A gateway in a process of its own: the blocking client, the process's death, and the calls that it had answered."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tailrace


def test_threads_share_a_blocking_client(gateway_process: Any) -> None:
    found: list[str] = []
    with tailrace.Client(gateway_process.address) as client:

        def work() -> None:
            found.extend(client.submit("add", a=number, b=1).id for number in range(25))

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(set(found)) == 100
        assert all(status is not None for status in client.status_many(found))
        assert client.cancel(found[0]) == "cancelled"
        assert client.cancel_many(found[:2]) == ["ended", "cancelled"]


async def test_a_blocking_client_works_where_an_event_loop_runs(gateway_process: Any) -> None:
    with tailrace.Client(gateway_process.address) as client:
        handle = client.submit("add", a=1, b=2)
        assert handle.status().state == "new"
        assert (await asyncio.to_thread(handle.status)).state == "new"


def test_a_client_finds_its_gateway_in_the_environment(gateway_process: Any, monkeypatch: Any) -> None:
    monkeypatch.setenv("TAILRACE_GATEWAY", gateway_process.address)
    with tailrace.Client() as client:
        assert client.submit("add", a=1).status().function == "add"


def test_a_closed_client_says_so(gateway_process: Any) -> None:
    client = tailrace.Client(gateway_process.address)
    client.submit("add", a=1)
    client.close()
    client.close()
    try:
        client.submit("add", a=1)
    except tailrace.InvalidRequest as error:
        assert "is closed" in str(error)
    else:
        raise AssertionError("a closed client was used")


FORK = """
import os, sys
import tailrace
with tailrace.Client(sys.argv[1]) as client:
    client.submit("add", a=1)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, client.submit("add", a=2).id.encode())
        os._exit(0)
    os.waitpid(child, 0)
    print(client.status(os.read(reading, 100).decode()).state)
"""


def test_a_client_works_in_a_forked_child(gateway_process: Any) -> None:
    # Given a program whose client was used before it forks, when the child uses it too, then both submissions are there
    done = subprocess.run(
        [sys.executable, "-c", FORK, gateway_process.address], check=False, capture_output=True, text=True, timeout=60
    )
    assert (done.stdout.strip(), done.returncode) == ("new", 0), done.stderr


def test_a_client_rides_out_a_restart(gateway_process: Any) -> None:
    with tailrace.Client(gateway_process.address, timeout=30) as client:
        first = client.submit("add", a=1)
        gateway_process.kill()
        again = threading.Thread(target=gateway_process.start)
        again.start()
        second = client.submit("add", a=2)
        again.join()
        assert first.id != second.id
        assert first.status().state == second.status().state == "new"


async def test_what_was_answered_is_in_the_queue_after_the_gateway_is_killed(
    gateway_process: Any, open_stores: Callable[[Path], Any]
) -> None:
    # Given clients that submit without pause, one by one and in batches
    answered: list[str] = []
    enough, killed = threading.Event(), threading.Event()

    def submit(many: bool) -> None:
        with tailrace.Client(gateway_process.address, timeout=0.1) as client:
            while not killed.is_set():
                with contextlib.suppress(tailrace.TailraceError):  # not answered, so nothing is promised of it
                    if many:
                        answered.extend(
                            handle.id for handle in client.submit_many(tailrace.Call("add", a=1) for _ in range(300))
                        )
                    else:
                        answered.append(client.submit("add", a=1).id)
                if len(answered) > 2000:
                    enough.set()

    threads = [threading.Thread(target=submit, args=(many,)) for many in (False, False, True)]
    for thread in threads:
        thread.start()
    # When the gateway is killed in the middle
    assert await asyncio.to_thread(enough.wait, 60)
    gateway_process.kill()
    killed.set()
    for thread in threads:
        await asyncio.to_thread(thread.join)
    # Then every id that was answered is in the queue when it is opened again, once
    async with open_stores(gateway_process.folder) as stores:
        for start in range(0, len(answered), 500):
            assert None not in await stores.queue.status(answered[start : start + 500])
        counts = await stores.queue.counts()
    assert len(set(answered)) == len(answered) <= sum(counts.values())
