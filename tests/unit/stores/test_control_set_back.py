"""A control store that was set back to an older state: a watcher that knew a later version hears of the state in
force."""

from __future__ import annotations

import asyncio
import sqlite3
from typing import Any, cast

from tailrace.foundation.duties import Duties
from tailrace.gateway.control import ControlDesk
from tailrace.gateway.known_functions import KnownFunctions
from tailrace.model.function_spec import FunctionSpec
from tailrace.model.gate import Gate
from tailrace.model.limits import Snapshot
from tailrace.stores.control.rules.valid_snapshot import is_valid
from tailrace.stores.state.sqlite import SCHEMA
from tailrace.stores.state.sqlite_restored import supersede
from tailrace.tailers.source_gates import SourceGates
from tailrace.testing.clock import ManualClock

PAUSED = Gate("", "", "pause", source="orders")


class Store:
    """A control store whose content a test replaces. `waits` counts the waits that began."""

    def __init__(self, first: Snapshot) -> None:
        self.now = first
        self.changed = asyncio.Event()
        self.waits = 0
        self.waiting = asyncio.Event()

    def put(self, snapshot: Snapshot) -> None:
        self.now = snapshot
        self.waiting.clear()
        self.changed.set()
        self.changed = asyncio.Event()

    async def snapshot(self) -> Snapshot:
        return self.now

    async def wait(self, version: int, timeout: float) -> Snapshot:
        self.waits += 1
        assert self.waits < 20, "it asks without end"
        while self.now.version == version:
            self.waiting.set()
            await self.changed.wait()
        return self.now


def test_of_two_readings_that_overtook_each_other_the_higher_one_stands() -> None:
    known = Snapshot(58)
    assert is_valid(Snapshot(59), 58, known)
    # What began to be read when 57 was known, and was overtaken
    assert not is_valid(Snapshot(57), 57, known)
    assert not is_valid(Snapshot(58), 57, known)
    # What began to be read when 58 was known cannot be older than that, unless there is no 58 any more
    assert is_valid(Snapshot(57), 58, known)
    # 58 was given twice
    assert is_valid(Snapshot(58, gates=[PAUSED]), 58, known)


async def test_a_tailer_hears_of_gates_of_a_store_that_was_set_back() -> None:
    store, heard = Store(Snapshot(58)), asyncio.Event()
    gates = SourceGates(cast(Any, store), heard.set)
    await gates.look()
    following = asyncio.create_task(gates.follow())
    await store.waiting.wait()
    # When the store has lost a version
    store.put(Snapshot(57))
    # Then the tailer waits for what comes behind that, and is not told the same without end
    await store.waiting.wait()
    # And the next gate is in force
    heard.clear()
    store.put(Snapshot(58, gates=[PAUSED]))
    await heard.wait()
    assert gates.paused("orders")
    following.cancel()


async def test_a_gateway_hears_of_changes_of_a_store_that_was_set_back() -> None:
    mail, other = FunctionSpec("mail"), FunctionSpec("other")
    store, functions, duties = Store(Snapshot(58, functions=[mail, other])), KnownFunctions(), Duties("gateway")
    desk = ControlDesk(cast(Any, store), functions, ManualClock(), 1, None, duties)
    await desk.start()
    await store.waiting.wait()
    # When the store has lost a version
    store.put(Snapshot(57, functions=[mail]))
    # Then the gateway waits for what comes behind that, and knows what there is
    await store.waiting.wait()
    assert desk.known().version == 57
    assert functions.get("other") is None
    # And what an operator writes under the number that was lost is in force
    store.put(Snapshot(58, functions=[mail], gates=[PAUSED]))
    await desk.refresh()
    assert desk.gates() == [PAUSED]
    await desk.stop()
    await duties.end()


async def test_a_gateway_that_was_away_meanwhile_takes_the_number_that_was_given_twice() -> None:
    store, duties = Store(Snapshot(58)), Duties("gateway")
    desk = ControlDesk(cast(Any, store), KnownFunctions(), ManualClock(), 1, None, duties)
    await desk.start()
    store.now = Snapshot(58, gates=[PAUSED])
    await desk.refresh()
    assert desk.gates() == [PAUSED]
    await desk.stop()
    await duties.end()


def test_no_number_is_given_twice_by_files_that_were_put_back() -> None:
    connection = sqlite3.connect(":memory:")
    connection.executescript(SCHEMA)
    connection.execute("UPDATE control_version SET version = 57")
    supersede(connection, 1_577_836_800 + 5000.0)
    assert connection.execute("SELECT version FROM control_version").fetchall() == [(5000,)]
    supersede(connection, 1_577_836_800 + 5000.0)
    assert connection.execute("SELECT version FROM control_version").fetchall() == [(5001,)]
