"""A folder in which anybody may put anything: no file of it stops the others, leads elsewhere, or makes a node wait."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from pathlib import Path

import pytest
from scenes.hung_folder import hung

from tailrace.foundation.own_thread import OwnThread
from tailrace.model.dead_letter import LetterFilter
from tailrace.model.errors import NotConnected
from tailrace.tailers.sources.directory import DirectoryOptions, DirectorySource


def source_of(stores, folder, **options):
    return DirectorySource(DirectoryOptions(path=str(folder), poll=0.02, **options), stores.inventory, "d")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "secret").write_text("of somebody else")
    made = tmp_path / "in"
    (made / "sub").mkdir(parents=True)
    for name in ("a", "b", "sub/c", "z"):
        (made / name).write_text("x")
    return made


@pytest.mark.parametrize("payload", ["reference", "content"])
async def test_what_is_no_file_any_more_is_a_dead_letter_and_stops_nothing(
    stores, scheduler, start, eventually, folder, payload
):
    # Given a tailer that has listed four files and may hand out none yet
    options = {"kind": "directory", "path": str(folder), "payload": payload, "poll": 0.02}
    tailer = await start(source=options, function="f")
    await eventually(lambda: tailer.overview().lag == 4)
    # When one becomes a pipe, one a link out of the folder, and one lies behind such a link
    (folder / "a").unlink()
    os.mkfifo(folder / "a")
    (folder / "b").unlink()
    (folder / "b").symlink_to(folder.parent / "secret")
    (folder / "sub").rename(folder.parent / "elsewhere")
    (folder / "sub").symlink_to(folder.parent / "elsewhere")
    scheduler.allow("f")
    # Then the fourth is handed out, and each of them says why it is not
    await eventually(lambda: (tailer.overview().settled, tailer.overview().dead) == (1, 3))
    letters = await stores.dead_letters.list(LetterFilter(), 10)
    assert sorted(letter.reason for letter in letters) == [
        "it is a link; follow_links is off",
        "it is a pipe",
        "sub is a link; follow_links is off",
    ]
    assert all(b"somebody" not in letter.payload for letter in letters)


async def test_links_are_followed_only_where_that_is_asked_for(stores, folder):
    # Given links to a file and to a folder outside
    (folder / "file-link").symlink_to(folder.parent / "secret")
    (folder.parent / "more").mkdir()
    (folder.parent / "more/d").write_text("y")
    (folder / "folder-link").symlink_to(folder.parent / "more")
    for follow, expected in (
        (False, ["a", "b", "sub/c", "z"]),
        (True, ["a", "b", "file-link", "folder-link/d", "sub/c", "z"]),
    ):
        source = source_of(stores, folder, follow_links=follow, payload="content")
        await source.open({})
        [batch] = await source.read(10, 1 << 20, 0)
        await source.close()
        await stores.inventory.forget("d")
        # Then what is behind them is handed out only if it was asked for, and what is left out is told
        assert sorted(batch.keys) == expected
        assert (b"of somebody else" in batch.payloads) is follow
        assert set(source.skipped) == (set() if follow else {"file-link", "folder-link"})


async def test_the_folder_itself_may_be_a_link(stores, folder):
    (folder.parent / "named").symlink_to(folder)
    source = source_of(stores, folder.parent / "named")
    await source.open({})
    [batch] = await source.read(10, 1 << 20, 0)
    await source.close()
    assert sorted(batch.keys) == ["a", "b", "sub/c", "z"]


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="needs a file that is longer than its size says")
async def test_a_file_that_grows_is_read_up_to_the_bound(stores, folder):
    # Given a file that is endless, whatever its size says
    source = source_of(stores, "/proc/self", payload="content", max_bytes=8, include=("maps",), recursive=False)
    await source.open({})
    [batch] = await source.read(10, 1 << 20, 0)
    await source.close()
    # Then what is beyond the bound is not read
    assert batch.refused == {0: "the file has 9 bytes, more than the 8 of max_bytes"}
    assert json.loads(batch.payloads[0])["name"] == "maps"


async def test_folders_deeper_than_any_end_and_are_told(stores, folder):
    place = os.open(folder, os.O_RDONLY)
    for _ in range(150):
        os.mkdir("d", dir_fd=place)
        below = os.open("d", os.O_RDONLY, dir_fd=place)
        os.close(place)
        place = below
    os.close(place)
    source = source_of(stores, folder)
    await source.open({})
    [batch] = await source.read(10, 1 << 20, 0)
    await source.close()
    assert sorted(batch.keys) == ["a", "b", "sub/c", "z"]
    assert list(source.skipped.values()) == ["it is more than 100 folders deep"]


async def test_a_folder_that_cannot_be_reached_for_a_moment_loses_no_file(stores, folder):
    # Given files that were listed
    source = source_of(stores, folder)
    await source.open({})
    # When the whole folder is away as they are read
    folder.rename(folder.parent / "away")
    with pytest.raises(NotConnected, match="cannot be read"):
        await source.read(10, 1 << 20, 0)
    (folder.parent / "away").rename(folder)
    # Then they are read when it is back, and none is passed
    [batch] = await source.read(10, 1 << 20, 0)
    await source.close()
    assert len(batch.positions) == 4 and not batch.absent


async def test_a_file_system_that_hangs_is_told_and_waited_for(stores, folder):
    # Given a listing that stands still in a part of the folder
    with hung(folder / "server"):
        source = source_of(stores, folder)
        source._thread._patience = 0.2
        with pytest.raises(NotConnected, match="listing server has not come back"):
            await source.open({})
        threads = threading.active_count()
        # When it is tried again, then no further thread hangs there
        for _ in range(3):
            with pytest.raises(NotConnected, match="listing server has not come back"):
                await source.open({})
            await source.close()
        assert threading.active_count() == threads
    # And when that part is gone, the others are read
    source._thread._patience = 30.0
    await source.open({})
    [batch] = await source.read(10, 1 << 20, 0)
    await source.close()
    assert sorted(batch.keys) == ["a", "b", "sub/c", "z"]


async def test_a_call_that_was_given_up_does_not_run_later_and_its_answer_is_nobody_s():
    # Given a thread that hangs, and calls behind what hangs
    thread, hangs, ran = OwnThread("test", patience=0.1), threading.Event(), []
    with pytest.raises(NotConnected, match="test has not come back"):
        await thread.call(hangs.wait)
    with pytest.raises(NotConnected):
        await thread.call(ran.append, "given up")
    waiting = asyncio.create_task(thread.call(ran.append, "cancelled"))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    # When it comes back
    hangs.set()
    # Then only what is asked from then on runs, also after it was closed
    assert await thread.call(lambda: 7) == 7
    thread.close()
    assert await thread.call(lambda: 8) == 8
    with pytest.raises(ZeroDivisionError):
        await thread.call(lambda: 1 / 0)
    thread.close()
    assert ran == []
