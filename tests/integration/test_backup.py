"""`tailrace store backup` beside a node that runs, `restore`, and files that are put back in other ways."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path

import pytest
from scenes import commands

from tailrace.assembly.embedded import STAMPED, EmbeddedStores
from tailrace.model.demand import Cell, Demand
from tailrace.model.errors import ConfigError
from tailrace.model.lease import LeaseSizes, wait_for_source
from tailrace.model.workload import Kind
from tailrace.stores.log.log import Record
from tailrace.stores.queue.queue import NewItem
from tailrace.testing.clock import ManualClock

ANY = Demand({Cell("f", 2): 1000}, frozenset(), 1000)
SIZES = LeaseSizes()


def stores(folder: Path, clock: ManualClock | None = None) -> EmbeddedStores:
    return EmbeddedStores(folder, clock=clock or ManualClock(), sizes=SIZES)


async def store(*words: str | Path) -> tuple[int, str, str]:
    """Runs `tailrace store`. Returns its exit code, its output and its errors."""
    done = await asyncio.to_thread(commands.tailrace, "store", *map(str, words))
    return done.returncode, done.stdout, done.stderr


async def held(folder: Path) -> tuple[int, int, int]:
    """The ends of two streams in the two logs of a data directory, and the number of items that wait."""
    async with stores(folder) as there:
        logged, delayed = [(await log.bounds("s"))[0].end for log in (there.log, there.delay_log)]
        return logged, delayed, (await there.queue.counts())["new"]


async def test_a_backup_beside_a_node_that_writes_is_of_one_moment_and_is_put_back(tmp_path: Path) -> None:
    clock = ManualClock()
    backups = [tmp_path / f"backup-{number}" for number in range(3)]
    async with stores(tmp_path / "data", clock) as one:
        for log in (one.log, one.delay_log):
            await log.create("s", 1)
        written, done = 0, asyncio.Event()

        async def moves() -> None:
            # What moves is durable where it goes before it leaves where it was: one file, then the other.
            nonlocal written
            while not done.is_set():
                await one.delay_log.append("s", 0, [Record(b"x" * 5000)])
                await one.log.append("s", 0, [Record(b"x")])
                await one.queue.submit([NewItem(Kind("f", 2), b"x")])
                written += 1

        moving = asyncio.create_task(moves())
        # When backups are taken meanwhile
        for backup in backups:
            before = written
            code, said, error = await store("backup", backup, "--data", tmp_path / "data", "--json")
            assert (code, error) == (0, "")
            assert set(json.loads(said)["files"]) == {"queue.db", "state.db", "log.db", "delay.db"}
            assert {file.stat().st_mode & 0o777 for file in backup.glob("*.db")} == {0o600}
            assert written > before, "the writers went on"
        done.set()
        await moving
    # Then each, put back, has what was written until one moment, in all its files
    for number, backup in enumerate(backups):
        folder = tmp_path / f"again-{number}"
        code, _, error = await store("restore", backup, "--data", folder)
        assert (code, error) == (0, "")
        logged, delayed, waiting = await held(folder)
        assert 0 <= delayed - logged <= 1
        assert 0 <= logged - waiting <= 1
        assert delayed > 0
    # And the first run on one hands nothing out for the lease of a source
    async with stores(tmp_path / "again-0", clock) as again:
        assert await again.queue.lease(ANY, 30.0, 0.0) is None
        clock.advance(wait_for_source(SIZES) + 1)
        assert await again.queue.lease(ANY, 30.0, 0.0) is not None


async def test_a_backup_of_a_node_that_was_stopped_and_its_mistakes(tmp_path: Path) -> None:
    async with stores(tmp_path / "data") as one:
        await one.queue.submit([NewItem(Kind("f", 2), b"x")])
        # A node that runs is not written over
        code, _, error = await store("restore", tmp_path, "--data", tmp_path / "data")
        assert code == 2
        assert "is no backup" in error
    code, said, _ = await store("backup", tmp_path / "backup", "--data", tmp_path / "data")
    assert code == 0
    assert "4 files" in said
    for words, code_, part in (
        (("backup", tmp_path / "backup", "--data", tmp_path / "data"), 2, "not an empty folder"),
        (("backup", tmp_path / "new", "--data", tmp_path / "nowhere"), 2, "has no databases"),
        (("restore", tmp_path / "backup", "--data", tmp_path / "data"), 2, "is not empty"),
        (("restore", tmp_path / "data", "--data", tmp_path / "new"), 2, "is no backup"),
    ):
        code, _, error = await store(*words)
        assert (code, part in error) == (code_, True), error
        assert "Traceback" not in error
    async with stores(tmp_path / "data"):
        code, _, error = await store("restore", tmp_path / "backup", "--data", tmp_path / "data")
        assert "in use by process" in error
    # A backup that is not whole is none
    whole = (tmp_path / "backup" / "log.db").read_bytes()
    (tmp_path / "backup" / "log.db").write_bytes(whole[:4096] + bytes(len(whole) - 4096))
    code, _, error = await store("restore", tmp_path / "backup", "--data", tmp_path / "new")
    assert "damaged" in error
    (tmp_path / "backup" / "log.db").write_bytes(whole[:-1])
    code, _, error = await store("restore", tmp_path / "backup", "--data", tmp_path / "new")
    assert "not as long" in error
    assert not list((tmp_path / "new").glob("*.db"))


@pytest.mark.parametrize("name", STAMPED[:4])
async def test_a_copy_over_the_folder_of_a_node_that_died_is_not_mixed_with_what_it_left(
    tmp_path: Path, name: str
) -> None:
    # Given a copy of a stopped node's files, and a run on them that died, with its write-ahead logs
    async with stores(tmp_path / "data") as one:
        await one.queue.submit([NewItem(Kind("f", 2), b"x")])
    copied = (tmp_path / "data" / name).read_bytes()
    async with stores(tmp_path / "data") as one:
        for number in range(50):
            await one.queue.submit([NewItem(Kind("f", 2), b"%d" % number)])
            await one.log.append(f"s{number}", 0, [Record(b"x")])
            await one.delay_log.append(f"s{number}", 0, [Record(b"x")])
            await one.ownership.take(f"s{number}", "", "me", 36.0, 0)
        shutil.copytree(tmp_path / "data", tmp_path / "died")
    left = {each.name: each.read_bytes() for each in (tmp_path / "died").iterdir() if each.suffix != ".db-shm"}
    for each, content in left.items():
        (tmp_path / "data" / each).write_bytes(content)
    assert (tmp_path / "data" / f"{name}-wal").stat().st_size > 0
    # When one file is written over by its copy
    (tmp_path / "data" / name).write_bytes(copied)
    # Then the node does not start, and says what to do; nothing was played in
    with pytest.raises(ConfigError, match=f"remove {name}-wal"):
        async with stores(tmp_path / "data"):
            pass
    assert (tmp_path / "data" / name).read_bytes() == copied
    # And without the leftovers the restore is noticed
    (tmp_path / "data" / f"{name}-wal").unlink()
    async with stores(tmp_path / "data") as again:
        assert await again.queue.lease(ANY, 30.0, 0.0) is None


async def test_a_node_that_died_and_nothing_else_is_no_restore(tmp_path: Path) -> None:
    async with stores(tmp_path / "data") as one:
        await one.queue.submit([NewItem(Kind("f", 2), b"x")])
        shutil.copytree(tmp_path / "data", tmp_path / "died")
    for each in (tmp_path / "died").iterdir():
        if each.suffix != ".db-shm" and each.name != "tailrace.stamp":
            (tmp_path / "data" / each.name).write_bytes(each.read_bytes())
    stamp = json.loads((tmp_path / "died" / "tailrace.stamp").read_text())
    (tmp_path / "data" / "tailrace.stamp").write_text(json.dumps(stamp))
    async with stores(tmp_path / "data") as again:
        assert await again.queue.lease(ANY, 30.0, 0.0) is not None
