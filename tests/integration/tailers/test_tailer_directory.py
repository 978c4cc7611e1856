"""The directory source, alone and behind a tailer."""

import json
from types import SimpleNamespace

from tailrace.model.dead_letter import LetterFilter
from tailrace.model.drop import Cause
from tailrace.model.errors import NotConnected
from tailrace.model.outcome import Outcome
from tailrace.model.workload import Ended
from tailrace.stores.inventory.inventory import InventoryEntry
from tailrace.tailers.sources.directory import DirectoryOptions, DirectorySource, build
from tailrace.tailers.sources.listing import version_of

SUCCESS = Ended(Outcome.SUCCESS)


def write(folder, *names, text="x"):
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def source_of(stores, folder, **options):
    return DirectorySource(DirectoryOptions(path=str(folder), poll=0.02, **options), stores.inventory, "d")


async def names(source, count=100):
    found = []
    for batch in await source.read(count, 1 << 20, 0):
        found.extend(json.loads(payload)["name"] for payload in batch.payloads)
    return sorted(found)


async def test_patterns_choose_files(stores, tmp_path):
    write(tmp_path / "in", "a.py", "b.txt", "sub/c.py", "sub/deep/d.py", "skip/e.py")
    for options, expected in (
        ({"include": ("*.py",)}, ["a.py", "skip/e.py", "sub/c.py", "sub/deep/d.py"]),
        ({"include": ("*.py",), "exclude": ("skip/*",)}, ["a.py", "sub/c.py", "sub/deep/d.py"]),
        ({"include": ("sub/*",)}, ["sub/c.py", "sub/deep/d.py"]),
        ({"recursive": False}, ["a.py", "b.txt"]),
    ):
        await stores.inventory.forget("d")
        source = source_of(stores, tmp_path / "in", **options)
        await source.open({})
        assert await names(source) == expected
        await source.close()


async def test_a_loop_of_links_ends_and_is_reported(stores, tmp_path):
    write(tmp_path / "in", "a", "sub/b")
    (tmp_path / "in/sub/up").symlink_to(tmp_path / "in")
    for follow, why in ((True, "own parents"), (False, "follow_links is off")):
        source = source_of(stores, tmp_path / "in", follow_links=follow)
        await source.open({})
        await source.close()
        assert why in source.skipped["sub/up"]
    assert await stores.inventory.end("d") == 2


async def test_a_changed_file_comes_again_and_an_unchanged_one_does_not(stores, tmp_path, eventually):
    write(tmp_path / "in", "a", "b")
    source = source_of(stores, tmp_path / "in")
    await source.open({})
    assert await names(source) == ["a", "b"]
    write(tmp_path / "in", "b", text="changed")
    [batch] = await source.read(10, 1 << 20, 10)
    assert [json.loads(payload)["size"] for payload in batch.payloads] == [7]
    await source.close()
    again = source_of(stores, tmp_path / "in")
    await again.open({"0": 3})
    assert await names(again) == []
    await again.close()


async def test_other_patterns_begin_anew_whatever_the_checkpoint_of_the_former_ones(stores, tmp_path):
    # Given a folder of which everything that the patterns took is settled
    write(tmp_path / "in", "a.txt", "b.txt", "c.csv", "d.csv")
    first = source_with("*.txt", stores, tmp_path / "in")
    await first.open({})
    [batch] = await first.read(10, 1 << 20, 10)
    checkpoint = {batch.partition: max(batch.positions) + 1}
    await first.close()
    # When the patterns change, then what they take now is read from the first file on
    second = source_with("*.csv", stores, tmp_path / "in")
    await second.open(checkpoint)
    assert await names(second) == ["c.csv", "d.csv"]
    await second.close()
    # And the former patterns go on where they were
    third = source_with("*.txt", stores, tmp_path / "in")
    await third.open(checkpoint)
    assert await names(third) == []
    await third.close()


def source_with(pattern, stores, folder):
    environment = SimpleNamespace(inventory=stores.inventory, checkpoints=stores.checkpoints, tailer="t")
    return build(DirectoryOptions(path=str(folder), include=(pattern,), poll=0.02), environment)


async def test_what_a_former_owner_noted_last_is_read_without_waiting_for_another_file(stores, tmp_path):
    # Given a source that waits for something to read
    write(tmp_path / "in", "a")
    source = source_of(stores, tmp_path / "in")
    await source.open({})
    assert await names(source) == ["a"]
    # When another owner, about to die, notes a file before this one lists it
    write(tmp_path / "in", "b")
    found = (tmp_path / "in" / "b").stat()
    await stores.inventory.offer("d", [InventoryEntry("b", version_of(found.st_size, found.st_mtime_ns))])
    # Then this one reads it
    [batch] = await source.read(10, 1 << 20, 10)
    assert batch.positions == [1]
    await source.close()


async def test_a_missing_folder_is_not_connected_and_may_come_later(stores, tmp_path):
    source = source_of(stores, tmp_path / "later")
    try:
        await source.open({})
    except NotConnected as error:
        assert "later" in str(error)
    write(tmp_path / "later", "a")
    await source.open({})
    assert await names(source) == ["a"]
    await source.close()


async def test_files_that_vanish_are_absent_and_those_too_large_are_refused(stores, tmp_path):
    write(tmp_path / "in", "a", "b", "c")
    write(tmp_path / "in", "big", text="x" * 100)
    source = source_of(stores, tmp_path / "in", payload="content", max_bytes=50)
    await source.open({})
    (tmp_path / "in/b").unlink()
    [batch] = await source.read(10, 1 << 20, 0)
    assert batch.positions == [0, 2, 3] and batch.absent == [1]
    assert batch.refused == {1: "the file has 100 bytes, more than the 50 of max_bytes"}
    assert (source.vanished, source.refused) == (1, 1)
    await source.close()


async def test_a_file_too_large_is_a_dead_letter_and_one_that_vanished_is_noted(
    stores, scheduler, start, eventually, tmp_path
):
    write(tmp_path / "in", "a", "b")
    write(tmp_path / "in", "big", text="x" * 100)
    source = source_of(stores, tmp_path / "in", payload="content", max_bytes=50)
    await source.open({})
    options = {"kind": "directory", "path": str(tmp_path / "in"), "payload": "content", "max_bytes": 50, "poll": 0.02}
    tailer = await start(source=options, function="f")  # not allowed yet: it lists and reads nothing
    await eventually(lambda: tailer.overview().lag == 3)
    (tmp_path / "in/b").unlink()
    scheduler.allow("f")
    await eventually(lambda: (tailer.overview().settled, tailer.overview().dead) == (1, 1))
    [letter] = (await stores.dead_letters.list(LetterFilter(), 10))[:1]
    assert letter.reason == "the file has 100 bytes, more than the 50 of max_bytes"
    noted = [(row.drop.first, row.drop.last, row.drop.cause) for row in await stores.drops.list("t", 10)]
    assert noted == [(1, 1, Cause.ABSENT)]


async def test_behind_a_tailer_every_file_is_settled_once(stores, scheduler, start, eventually, tmp_path):
    write(tmp_path / "in", *(f"{n}.py" for n in range(300)), "broken/dangling")
    (tmp_path / "in/dangling.py").symlink_to(tmp_path / "nowhere")
    scheduler.allow("f")
    options = {"kind": "directory", "path": str(tmp_path / "in"), "include": ["*.py"], "once": True}
    tailer = await start(source=options, function="f")
    await eventually(lambda: tailer.overview().settled == 300)
    assert len(set(scheduler.ids)) == len(scheduler.ids) == 300
    await eventually(lambda: tailer.overview().lag == 0)
