"""The power is cut at any moment while a node writes its files: everything answered is there at the next start.

The disk is a recorded one: what SQLite wrote and did not sync is there or not, sector by sector. The same with the
whole platform and a real file system is `bench --scenario power_cut --engine sqlite`, which needs loop devices.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from tailrace.assembly.embedded import EmbeddedStores
from tailrace.gateway.rules.spool import SpoolRule
from tailrace.model.demand import Demand
from tailrace.model.workload import Kind
from tailrace.stores.checkpoints.checkpoints import Mark
from tailrace.stores.config import StoresConfig
from tailrace.stores.log.log import Record
from tailrace.stores.queue.queue import NewItem
from tailrace.stores.spool import sqlite as spool_sqlite
from tailrace.stores.spool.sqlite import SqliteSpool
from tailrace.stores.sqlite.file import SqliteFile
from tailrace.testing.sqlite_recorded import NoShim, RecordedDisk

ROUNDS, CUTS = 12, 25


class Answered(NamedTuple):
    """An answer that a store gave after so many operations on the disk."""

    deeds: int
    what: str
    value: object


class Node:
    """Node that opens every store which keeps something in a file."""

    def __init__(self, stores: EmbeddedStores, spool: SqliteSpool) -> None:
        self.stores = stores
        self.spool = spool


@asynccontextmanager
async def opened(folder: Path, durability: str) -> AsyncIterator[Node]:
    config = StoresConfig.model_validate({"durability": durability})
    file = SqliteFile(folder / "spool.db", spool_sqlite.SCHEMA, name="spool", synchronous=config.synchronous)
    async with EmbeddedStores(folder, config) as stores:
        await file.open()
        try:
            spool = SqliteSpool(file, room=SpoolRule(10_000, 1 << 20).check_room)
            await spool.open()
            yield Node(stores, spool)
        finally:
            await file.close()


async def lived(folder: Path, disk: RecordedDisk, durability: str) -> list[Answered]:
    """Lives a node's life: all that stores something does so again and again, side by side."""
    said: list[Answered] = []

    def answered(what: str, value: object) -> None:
        said.append(Answered(len(disk.deeds), what, value))

    async with opened(folder, durability) as node:
        stores = node.stores

        async def queue() -> None:
            for number in range(ROUNDS):
                items = [NewItem(Kind("f", 2), b"x" * 700, dedupe_key=f"{number}/{each}") for each in range(6)]
                for each in await stores.queue.submit(items):
                    answered("submitted", each.id)
                leased = await stores.queue.lease(Demand({("f", 2): 4}, total=4), 30.0, 0.0)
                assert leased is not None
                answered("fence", leased.fence)
                assert await stores.queue.settle(leased.fence, leased.ids, ()) == []
                for id in leased.ids:
                    answered("settled", id)

        async def log(name: str) -> None:
            where = stores.log if name == "log" else stores.delay_log
            await where.create("s", 1)
            for number in range(ROUNDS):
                first = await where.append("s", 0, [Record(f"{number}".encode() * 300)] * 3)
                answered(name, first + 3)

        async def state() -> None:
            for number in range(1, ROUNDS + 1):
                row = await stores.ownership.read("t", "")
                taken = await stores.ownership.take("t", "", "me", 5.0, row.version if row else 0)
                assert taken is not None
                answered("epoch", taken.epoch)
                await stores.checkpoints.open("t", taken.epoch)
                await stores.checkpoints.commit("t", taken.epoch, {"0": Mark(10 * number)})
                answered("checkpoint", 10 * number)
                await stores.results.put({f"r{number}": b"7" * 500})
                answered("result", f"r{number}")

        async def spool() -> None:
            for number in range(ROUNDS):
                (item,) = await node.spool.add([NewItem(Kind("f", 2), b"x" * 300, dedupe_key=f"{number}")])
                answered("spooled", item.id)

        await asyncio.gather(queue(), log("log"), log("delay"), state(), spool())
    return said


async def gone(folder: Path, said: list[Answered]) -> list[Answered]:
    """Answers that a node which starts on these files knows nothing of any more."""
    async with opened(folder, "durable") as node:
        stores = node.stores
        of = {what: [each for each in said if each.what == what] for what in {each.what for each in said}}
        found: list[Answered] = []

        async def known(what: str, ids: list[str]) -> dict[str, object]:
            states = await (node.spool.find(ids) if what == "spooled" else stores.queue.status(ids))
            return {id: each for id, each in zip(ids, states, strict=True) if each is not None}

        for what in ("submitted", "settled", "spooled"):
            there = await known(what, [str(each.value) for each in of.get(what, ())])
            for each in of.get(what, ()):
                state = there.get(str(each.value))
                if state is None or (what == "settled" and getattr(state, "state").label != "success"):  # noqa: B009
                    found.append(each)
        row, marks = await stores.ownership.read("t", ""), await stores.checkpoints.load("t")
        at_least = {"epoch": row.epoch if row else 0, "checkpoint": marks["0"].position if "0" in marks else 0}
        for name, where in (("log", stores.log), ("delay", stores.delay_log)):
            bounds = await where.bounds("s") if "s" in await where.streams() else {}
            at_least[name] = bounds[0].end if 0 in bounds else 0
            page = await where.read("s", 0, 0, 1000, 1 << 20) if at_least[name] else None
            assert page is None or len(page.payloads) == at_least[name], f"{name}: a hole"
        for what, reached in at_least.items():
            found += [each for each in of.get(what, ()) if isinstance(each.value, int) and each.value > reached]
        for each in of.get("result", ()):
            if await stores.results.get(str(each.value)) is None:
                found.append(each)
    return found


async def cut_everywhere(folder: Path, durability: str) -> list[Answered]:
    """Lives one life, and cuts its power at many moments, each in a folder of its own. Returns the answers that were
    lost."""
    data, lost = folder / "data", []
    data.mkdir()
    try:
        with RecordedDisk(data) as disk:
            said = await lived(data, disk, durability)
    except NoShim as error:
        pytest.skip(f"{error}; a distribution's Python has the system's")
    assert {each.what for each in said} >= {"submitted", "settled", "log", "delay", "epoch", "checkpoint", "spooled"}
    for seed in range(CUTS):
        chance = random.Random(seed)
        # Just before or after an answer, or anywhere
        near = chance.choice(said).deeds + chance.randrange(-3, 4)
        after = max(0, min(len(disk.deeds), near if seed % 2 else chance.randrange(len(disk.deeds) + 1)))
        disk.cut(after, chance, folder / str(seed))
        lost += await gone(folder / str(seed), [each for each in said if each.deeds <= after])
    return lost


@pytest.mark.timeout(120)
async def test_what_was_answered_survives_a_power_cut_at_any_moment(tmp_path: Path) -> None:
    assert await cut_everywhere(tmp_path, "durable") == []


@pytest.mark.timeout(120)
async def test_what_the_relaxed_profile_may_lose_is_seen(tmp_path: Path) -> None:
    # Given the profile that survives no more than a crash of the process, then a cut takes something with it: a check
    # that could not see that would say nothing of the other one; and what is found is whole all the same
    assert {each.what for each in await cut_everywhere(tmp_path, "relaxed")} >= {"submitted", "log"}
