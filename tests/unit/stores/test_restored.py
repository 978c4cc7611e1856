"""Files that were put back from a copy are noticed, however that was done; a plain restart is not."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tailrace.model.errors import ConfigError
from tailrace.stores.restored import STAMP, Stamp

NAMES = ("queue.db", "state.db")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    data = tmp_path / "data"
    data.mkdir()
    for name in NAMES:
        (data / name).write_text("one")
    return data


def stamp(folder: Path) -> Stamp:
    return Stamp(folder, NAMES)


def test_a_new_directory_was_put_back_by_nobody(tmp_path: Path) -> None:
    assert stamp(tmp_path).moved() == []


def test_a_restart_is_no_restore_whether_the_last_run_ended_well_or_not(folder: Path) -> None:
    stamp(folder).opened()
    (folder / "queue.db").write_text("changed while it was open")
    assert stamp(folder).moved() == []
    stamp(folder).closed()
    assert stamp(folder).moved() == []


def copied_back(folder: Path, backup: Path) -> None:
    shutil.rmtree(folder)
    shutil.copytree(backup, folder)


def over_the_files(folder: Path, backup: Path) -> None:
    for file in backup.iterdir():
        shutil.copy2(file, folder / file.name)


def one_file(folder: Path, backup: Path) -> None:
    (backup / "state.db").replace(folder / "state.db")


@pytest.mark.parametrize(
    ("how", "found"), [(copied_back, [*NAMES]), (over_the_files, [*NAMES]), (one_file, ["state.db"])]
)
def test_a_copy_is_noticed(folder: Path, tmp_path: Path, how: Callable[[Path, Path], None], found: list[str]) -> None:
    # Given a backup that was taken as the docs say, and a run after it
    stamp(folder).closed()
    shutil.copytree(folder, tmp_path / "backup")
    stamp(folder).opened()
    for name in NAMES:
        (folder / name).write_text("two, and longer")
    stamp(folder).closed()
    # When it is put back
    how(folder, tmp_path / "backup")
    assert stamp(folder).moved() == found
    # And once that was noted, nothing is noticed any more
    stamp(folder).opened()
    assert stamp(folder).moved() == []


def test_files_without_a_stamp_and_what_an_operator_says(folder: Path) -> None:
    assert stamp(folder).moved() == [*NAMES]
    stamp(folder).closed()
    stamp(folder).forget()
    stamp(folder).forget()
    assert stamp(folder).moved() == [*NAMES]
    (folder / STAMP).write_text("not JSON")
    assert stamp(folder).moved() == [*NAMES]


def test_a_file_that_is_gone_is_refused_until_it_is_to_begin_anew_and_found_put_back_then(folder: Path) -> None:
    # Given a file of a store that was lost
    stamp(folder).closed()
    (folder / "state.db").unlink()
    (folder / "queue.db").write_bytes(b"")
    with pytest.raises(ConfigError, match=r"queue\.db is empty and .*state\.db is missing"):
        stamp(folder).refuse_gone()
    # When both are to begin anew
    for name in NAMES:
        stamp(folder).begin_anew(name)
    # Then nothing is refused, and the run that makes them waits, as do those that follow until its wait is over
    stamp(folder).refuse_gone()
    assert stamp(folder).moved() == [*NAMES] and not (folder / "queue.db").exists()
    for name in NAMES:
        (folder / name).write_text("anew")
    stamp(folder).opened(moved=NAMES)
    assert stamp(folder).moved() == [*NAMES]
    stamp(folder).opened()
    assert stamp(folder).moved() == []


@pytest.mark.parametrize("name", ["queue.db", "log.db"])
def test_only_a_store_that_is_gone_begins_anew(folder: Path, name: str) -> None:
    stamp(folder).closed()
    before = (folder / STAMP).read_text()
    with pytest.raises(ConfigError, match="Nothing was changed"):
        stamp(folder).begin_anew(name)
    assert (folder / STAMP).read_text() == before


def test_a_log_that_was_written_back_after_the_end_is_no_copy_and_a_copy_of_the_same_run_is_one(folder: Path) -> None:
    # Given files that a run marked, one of which has its last mark, since nobody kept the log
    for name, mark in zip(NAMES, (6, 5), strict=True):
        marked(folder / name, mark)
    stamp(folder).closed(dict.fromkeys(NAMES, 7))
    # When both are changed after its end: one is as the run closed it, the other has a mark from before
    for name in NAMES:
        os.utime(folder / name)
    stamp_now = stamp(folder)
    # Then only the other one was put back
    assert stamp_now.moved() == ["state.db"]


def marked(file: Path, mark: int) -> None:
    """Gives a file a header with this mark."""
    file.write_bytes(bytes(60) + mark.to_bytes(4, "big") + bytes(36))
