"""A process that is killed in the middle of its writes loses nothing that the queue had answered for.

(SIGKILL says nothing of a power cut: the page cache survives it. It does say that an answer comes after the commit, and
that what is kept in memory can be read again from the tables.)
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tailrace.model.claim import State
from tailrace.model.demand import Cell, Demand
from tailrace.stores.queue.sqlite.queue import SCHEMA, SqliteQueue
from tailrace.stores.sqlite.file import SqliteFile

_CHILD = """
import asyncio, json, sys
from pathlib import Path
from tailrace.model.claim import Settle, State
from tailrace.model.demand import Cell, Demand
from tailrace.model.workload import Kind
from tailrace.stores.queue.queue import NewItem
from tailrace.stores.queue.sqlite.queue import SCHEMA, SqliteQueue
from tailrace.stores.sqlite.file import SqliteFile

def say(**what):
    print(json.dumps(what), flush=True)

async def submit(queue):
    number = 0
    while True:
        items = [NewItem(Kind("f", 2), f"{number + i}".encode(), key=f"k{i % 3}" if i % 2 else "") for i in range(8)]
        number += 8
        say(submitted=[each.id for each in await queue.submit(items)])

async def settle(queue):
    while True:
        leased = await queue.lease(Demand({Cell("f", 2): 5}, frozenset(), 5), 3600, 5)
        if leased is None:
            continue
        failed = [Settle(id, leased.fence, State.FATAL_FAILURE) for id in leased.ids[:1]]
        refused = await queue.settle(leased.fence, leased.ids[1:], failed)
        say(fence=leased.fence, refused=refused, failed=leased.ids[:1], succeeded=leased.ids[1:])

async def main():
    file = SqliteFile(Path(sys.argv[1]), SCHEMA, name="queue")
    await file.open()
    queue = SqliteQueue(file)
    await queue.open()
    await asyncio.gather(submit(queue), submit(queue), settle(queue))

asyncio.run(main())
"""


def run_until_killed(path: Path, lines: int) -> list[dict[str, Any]]:
    """Starts the child and kills it after so many lines. Returns all that it said."""
    child = subprocess.Popen([sys.executable, "-c", _CHILD, str(path)], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    told = [json.loads(child.stdout.readline()) for _ in range(lines)]
    child.kill()
    rest, _ = child.communicate()
    return told + [json.loads(line) for line in rest.splitlines(keepends=True) if line.endswith("\n")]


@pytest.mark.parametrize("lines", [3, 60, 200])
async def test_nothing_that_was_answered_is_missing_after_a_kill(tmp_path: Path, lines: int) -> None:
    # Given a process that submits and settles as fast as it can, and says what it was told
    path = tmp_path / "queue.db"
    # When it is killed somewhere
    told = run_until_killed(path, lines)
    # Then the queue has every word of it
    file = SqliteFile(path, SCHEMA, name="queue", synchronous="NORMAL")
    await file.open()
    queue = SqliteQueue(file)
    await queue.open()
    try:
        expected: dict[str, State] = {}
        for line in told:
            assert not line.get("refused")
            expected.update(dict.fromkeys(line.get("succeeded", ()), State.SUCCESS))
            expected.update(dict.fromkeys(line.get("failed", ()), State.FATAL_FAILURE))
        submitted = [id for line in told for id in line.get("submitted", ())]
        assert submitted
        for id, status in zip(submitted, await queue.status(submitted), strict=True):
            assert status is not None, f"{id} was accepted and is gone"
            if id in expected:
                assert status.state is expected[id]
        # And fences go on rising, and what was out under the dead process is still out.
        leased = await queue.lease(Demand({Cell("f", 2): 1000}, frozenset(), 1000), 10, 0)
        last = max((line["fence"] for line in told if "fence" in line), default=0)
        assert leased is not None
        assert leased.fence > last
        assert not set(leased.ids) & set(expected)
        counts = await queue.counts()
        rows = await file.read(lambda c: c.execute("SELECT state, count(*) FROM tasks GROUP BY state").fetchall())
        assert {label: count for label, count in counts.items() if count} == {
            State(state).label: count for state, count in rows
        }
    finally:
        await file.close()
