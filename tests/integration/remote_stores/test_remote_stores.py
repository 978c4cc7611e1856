"""Each store's protocol over a server on loopback, in front of the embedded engines: values come out as they went
in."""

from __future__ import annotations

import asyncio

import pytest
from scenes.served_stores import DEMAND, KIND, NOT_UTF8

from tailrace.model.claim import Settle, State
from tailrace.model.dead_letter import EVERY, DeadLetter, LetterFilter
from tailrace.model.errors import StaleFence
from tailrace.model.function_spec import FunctionSpec
from tailrace.model.gate import Gate
from tailrace.model.limits import Quota, QuotaChange, Snapshot
from tailrace.model.priority import Priority
from tailrace.model.retry import Retry
from tailrace.model.workload import Extra
from tailrace.stores.checkpoints.checkpoints import Checkpoints, Mark
from tailrace.stores.control.control import Control
from tailrace.stores.dead_letters.dead_letters import DeadLetters
from tailrace.stores.inventory.inventory import Inventory, InventoryEntry
from tailrace.stores.log.log import Bounds, Log, Record
from tailrace.stores.queue.queue import NewItem, Queue
from tailrace.stores.remote import (
    RemoteCheckpoints,
    RemoteControl,
    RemoteDeadLetters,
    RemoteInventory,
    RemoteLog,
    RemoteQueue,
    RemoteResults,
)
from tailrace.wire.stores import LONGEST_WAIT


async def test_a_workload_goes_through_its_life(address: str) -> None:
    async with RemoteQueue(address) as remote:
        queue: Queue = remote

        [first, again] = await queue.submit(
            [
                NewItem(KIND, NOT_UTF8, key="k", headers=(("trace", "1"),), dedupe_key="once"),
                NewItem(KIND, b"other", dedupe_key="once"),
            ]
        )
        leased = await queue.lease(DEMAND, seconds=30.0, wait=0.0)

        assert (first.duplicate, again) == (False, (first.id, True))
        assert leased is not None
        assert (leased.ids, leased.kinds, leased.payloads, leased.attempts) == ([first.id], [KIND], [NOT_UTF8], [1])
        assert leased.extras == {0: Extra(key="k", headers=(("trace", "1"),))}

        renewed = await queue.renew(leased.ids, leased.fence, 30.0, State.PROCESSING)
        assert (renewed.lost, renewed.cancel) == ([], [])
        assert await queue.cancel([first.id, "0" * 16]) == ["requested", "unknown"]
        assert (await queue.renew(leased.ids, leased.fence, 30.0, State.PROCESSING)).cancel == [first.id]

        end = Settle(first.id, leased.fence, State.FATAL_FAILURE, attempts=1, reason="no such card")
        assert await queue.settle(leased.fence, [], [end]) == []

        [status, unknown] = await queue.status([first.id, "0" * 16])
        assert unknown is None
        assert status is not None
        assert (status.state, status.kind, status.reason) == (State.FATAL_FAILURE, KIND, "no such card")
        assert isinstance(status.state, State)
        assert (await queue.counts())["fatal_failure"] == 1


async def test_a_lease_waits_at_the_server_for_what_another_client_submits(address: str) -> None:
    async with RemoteQueue(address) as one, RemoteQueue(address) as other:
        waiting = asyncio.create_task(one.lease(DEMAND, 30.0, LONGEST_WAIT))
        [made] = await other.submit([NewItem(KIND, b"")])

        leased = await waiting

        assert leased is not None
        assert leased.ids == [made.id]


async def test_nothing_due_is_none(address: str) -> None:
    async with RemoteQueue(address) as queue:
        assert await queue.lease(DEMAND, 30.0, 0.0) is None


async def test_records_are_read_as_they_were_appended(address: str) -> None:
    records = [Record(NOT_UTF8, f"key {number}", (("n", str(number)),)) for number in range(300)]
    async with RemoteLog(address) as remote:
        log: Log = remote
        await log.create("s", 2)

        assert await log.append("s", 1, records) == 0
        assert await log.append("s", 1, [Record(b"last")]) == 300

        found = await log.read("s", 1, 1, 298, 1 << 20)
        assert found.positions == list(range(1, 299))
        assert found.payloads == [NOT_UTF8] * 298
        assert (found.keys[0], found.headers[-1]) == ("key 1", (("n", "298"),))
        assert await log.bounds("s") == {0: Bounds(0, 0), 1: Bounds(0, 301)}
        await log.trim("s", 1, 300)
        assert (await log.bounds("s"))[1] == Bounds(300, 301)
        assert await log.streams() == ["s"]


async def test_the_delay_log_is_a_log_of_its_own(address: str) -> None:
    async with RemoteLog(address) as log, RemoteLog(address, "delay_log") as delay_log:
        await delay_log.append("delay.1s", 0, [Record(b"parked")])

        assert await delay_log.streams() == ["delay.1s"]
        assert await log.streams() == []


async def test_a_wait_for_records_ends_with_an_append(address: str) -> None:
    async with RemoteLog(address) as one, RemoteLog(address) as other:
        await one.create("s", 1)
        waiting = asyncio.create_task(one.wait("s", {0: 0}, LONGEST_WAIT))
        await other.append("s", 0, [Record(b"x")])

        async with asyncio.timeout(LONGEST_WAIT / 2):
            await waiting


async def test_a_newer_epoch_fences_the_older_one(address: str) -> None:
    async with RemoteCheckpoints(address) as remote:
        checkpoints: Checkpoints = remote
        assert await checkpoints.open("t", 4) == {}
        marks = {"0": Mark(7, NOT_UTF8, 12), "1": Mark(9)}
        await checkpoints.commit("t", 4, marks)

        assert await checkpoints.open("t", 5) == marks
        with pytest.raises(StaleFence, match="epoch 4 is over"):
            await checkpoints.commit("t", 4, {"0": Mark(8)})
        assert await checkpoints.load("t") == marks


async def test_dead_letters_are_listed_without_and_fetched_with_their_payload(address: str) -> None:
    letters = [
        DeadLetter(f"id {n}", "t", KIND, NOT_UTF8, "fatal", "broken", 3, 1, 10.0, 20.0 + n, "k", (("a", "b"),), "half")
        for n in range(3)
    ]
    async with RemoteDeadLetters(address) as remote:
        dead_letters: DeadLetters = remote
        await dead_letters.add(letters)

        assert [letter.id for letter in await dead_letters.list(LetterFilter(function="charge"), 2)] == ["id 0", "id 1"]
        [last] = await dead_letters.list(EVERY, limit=10, after=2)
        assert (last.id, last.payload) == ("id 2", b"")
        assert await dead_letters.get("id 1") == letters[1]
        assert await dead_letters.get("none") is None
        assert await dead_letters.remove([1, 1000]) == 1
        assert await dead_letters.count() == 2


async def test_results_are_kept_by_id(address: str) -> None:
    async with RemoteResults(address) as results:
        await results.put({"one": NOT_UTF8, "two": b""})

        assert [await results.get(id) for id in ("one", "two", "three")] == [NOT_UTF8, b"", None]


async def test_a_watcher_gets_the_snapshot_that_a_change_makes(address: str) -> None:
    spec = FunctionSpec(
        "charge", "2", Priority.REPORTING, Retry(delays=(1.0, 2.5)), timeout=1.5, description="takes money"
    )
    async with RemoteControl(address) as remote, RemoteControl(address) as operator:
        control: Control = remote
        before = await control.snapshot()
        waiting = asyncio.create_task(control.wait(before.version, LONGEST_WAIT))
        await operator.put_gate(Gate("charge", "invoices", "pause", "ops", "audit", 5.0))
        after = await waiting

        assert after is not None
        assert after == Snapshot(before.version + 1, [Gate("charge", "invoices", "pause", "ops", "audit", 5.0)])
        await operator.put_quotas(QuotaChange(0, "ann", "", 5.0, (Quota("charge", 3, 2.5),)), 0)
        version = await operator.register([spec])
        assert await operator.register([spec]) == version

        full = await control.snapshot()
        assert (full.quotas, full.functions) == ([Quota("charge", 3, 2.5)], [spec])
        assert await control.wait(version, 0.0) is None


async def test_the_inventory_numbers_what_is_new(address: str) -> None:
    async with RemoteInventory(address) as remote:
        inventory: Inventory = remote
        assert (
            await inventory.offer(
                "folder", [InventoryEntry("a", "1"), InventoryEntry("b", "1"), InventoryEntry("a", "1")]
            )
            == 2
        )
        assert await inventory.offer("folder", [InventoryEntry("a", "2"), InventoryEntry("b", "1")]) == 1

        found = await inventory.read("folder", 1, 10)
        assert (found.positions, found.names, found.versions) == ([1, 2], ["b", "a"], ["1", "2"])
        assert await inventory.end("folder") == 3
        await inventory.forget("folder")
        assert await inventory.end("folder") == 0
