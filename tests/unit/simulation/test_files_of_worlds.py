"""Accidents of the stores' files: a power cut tears an unfinished write, and a writer that ended is replaced."""

import itertools
from pathlib import Path

import pytest

from tailrace.testing.simulation.plan import Deed, Fault, Item, Plan
from tailrace.testing.simulation.plans import plan_of
from tailrace.testing.simulation.sqlite_disk import Disk
from tailrace.testing.simulation.story import Story, StoryEnd
from tailrace.testing.simulation.torn import torn


def told(*faults: Fault) -> StoryEnd:
    deeds = (Deed("raise", 0.1), Deed("ok", 0.1))
    items = tuple(Item(n, ("queue", "orders")[n % 2], 1.0 + n / 5, deeds if n % 4 else ()) for n in range(20))
    return Story(Plan(1, items, faults, calm=40.0, patience=120.0)).tell()


@pytest.mark.parametrize(("file", "number"), [*itertools.product(["queue", "log", "delay", "state"], [0, 1])])
def test_a_writer_that_ends_by_itself_costs_nothing_but_time(file: str, number: int) -> None:
    story = told(Fault(2.0, "writer", "node", seconds=9.0, what=file, number=number))
    assert story.happened[f"{file}: ends {'after' if number else 'before'}"] == 1
    assert story.wrong == []


@pytest.mark.parametrize("at", [1.5, 2.5, 3.5])
def test_a_power_cut_in_the_middle_of_a_commit_loses_nothing_that_was_answered(at: float) -> None:
    story = told(Fault(at, "power", "node", seconds=2.0))
    assert len({what for what in story.happened if what.endswith(": power")} - {"fault: power"}) == 1
    assert story.wrong == []


@pytest.mark.parametrize("cut", [0.0, 0.3, 0.99, 1.0])
def test_of_a_torn_commit_all_is_there_or_nothing_and_of_those_before_it_everything(cut: float) -> None:
    # Given a database with a row that was committed, and one whose commit has begun
    disk = Disk(in_files=True)
    connection = disk.connect("rows")
    connection.execute("CREATE TABLE rows (n)")
    connection.execute("INSERT INTO rows VALUES (1)")
    connection.execute("BEGIN")
    connection.execute("INSERT INTO rows VALUES (2)")
    # When the power is cut when so much of it is written
    disk.cut_power("rows", lambda least, most: least + int(cut * (most - least)))
    # Then SQLite recovers what was committed, and the last one only if all of it was written
    found = [n for (n,) in disk.rows("rows", "SELECT n FROM rows")]
    disk.close()
    assert found == ([1, 2] if cut == 1.0 else [1])


def test_a_log_is_torn_at_any_byte_of_what_was_written_last() -> None:
    assert torn(b"abc", b"abcdef", lambda least, most: {3: 4, 0: 0}[least]) == b"abcd"
    assert torn(b"abc", b"abcdef", lambda least, most: {3: 4, 0: 1}[least]) == b"abcd\0\0"
    assert torn(b"abcxyz", b"abcdef", lambda least, most: {3: 5, 0: 0}[least]) == b"abcdez"
    assert torn(b"abc", b"abc", lambda least, most: least) == b"abc"


def test_random_worlds_have_both() -> None:
    kinds = {fault.kind for seed in range(40) for fault in plan_of(seed).faults}
    assert kinds >= {"writer", "power"}


def test_files_in_folders_are_gone_when_a_world_is_over() -> None:
    disk = Disk(in_files=True)
    (row,) = disk.connect("rows").execute("PRAGMA database_list").fetchall()
    assert Path(row[2]).exists()
    disk.close()
    assert not Path(row[2]).exists()
