"""The scenario `power_cut`: its report of losses, and the disk that is cut off."""

import os
import sys
import tempfile
from pathlib import Path

import pytest
from servers import none_to_be_had

from tailrace.bench.crash_disk import CrashDisk
from tailrace.bench.faults.journal import Line
from tailrace.bench.faults.known_too_soon import JournaledProgress, KnownProgress
from tailrace.bench.faults.lost_settlements import known_done, ran_again
from tailrace.bench.faults.power import before, power_cut_sqlite
from tailrace.bench.power_cut import judged, power_cut
from tailrace.model.errors import ConfigError, InvalidRequest


def test_what_is_lost_counts_from_the_oldest_of_it():
    known = {"a": 10.0, "b": 11.5, "c": 11.9}
    assert judged(known, ["b", "c"], cut=12.0) == (pytest.approx(0.5), 2)
    assert judged(known, [], cut=12.0) == (0.0, 0)


async def test_an_engine_must_be_known(tmp_path: Path):
    with pytest.raises(
        InvalidRequest, match="unknown engine 'kafka': expected one of sqlite, postgres, redis, redis-everysec"
    ):
        await power_cut(tmp_path, 1, lambda what, share: None, "kafka")


def test_what_was_lost_is_as_old_as_the_next_cut_says():
    assert before(3.0, [1.0, 4.5, 9.0]) == 1.5
    assert before(9.5, [1.0, 4.5, 9.0]) == 0.0


def test_what_was_known_to_be_over_and_ran_again_is_found_once():
    # Given one of the queue that was known to have ended at 3, and a stream's checkpoint that passed two at 5, of which
    # one had failed and waits in the delay service
    def line(word: str, id: str, fence: int, at: float) -> Line:
        return Line(word, id, fence, 1, at, 7, 1)

    told = [
        KnownProgress(4.0, "s/0", JournaledProgress(0)),
        KnownProgress(5.0, "s/0", JournaledProgress(1, frozenset({1}))),
        KnownProgress(6.0, "s/0", JournaledProgress(2)),
    ]
    known = known_done(["s/0/0", "s/0/1", "s/0/2", "a"], told) | {"a": 3.0}
    assert known == {"s/0/0": 5.0, "s/0/1": 5.0, "a": 3.0}
    lines = [
        *(line("start", "a", 1, 1.0), line("success", "a", 1, 2.0)),
        *(line("start", "s/0/0", 1, 1.0), line("success", "s/0/0", 1, 2.0)),
        *(line("start", "s/0/1", 1, 1.0), line("retry", "s/0/1", 1, 2.0), line("start", "s/0/1", 2, 9.0)),
    ]
    assert ran_again(lines, known) == []
    # When the power is cut at 7 and two of them start again, even twice
    lines += [line("start", "a", 2, 8.0), line("start", "a", 3, 9.0), line("start", "s/0/0", 2, 8.0)]
    assert [(each.law, each.id) for each in ran_again(lines, known)] == [("again", "a"), ("again", "s/0/0")]
    # But what ran again before anybody knew is no more than a duplicate
    assert ran_again(lines, {"a": 10.0, "s/0/0": 1.5}) == []


@pytest.fixture
def disk(tmp_path: Path):
    disk = CrashDisk(tmp_path / "image", tmp_path / "mounted")
    try:
        disk.make()
        disk.mount()
    except ConfigError as error:
        if sys.platform == "linux" and os.geteuid() == 0 and Path("/dev/loop-control").exists():
            raise
        pytest.skip(str(error))
    yield disk
    disk.unmount()


@pytest.mark.long(minutes=0.3)  # a sync waits for all that the machine's disk has to do
def test_a_cut_keeps_what_was_synced_and_nothing_of_what_was_only_written(disk: CrashDisk, tmp_path: Path):
    # Given a file that is on the disk, and one that is on its way
    (disk.path / "synced").write_bytes(b"x" * 5000)
    disk.sync()
    (disk.path / "written").write_bytes(b"y" * 5000)
    # When the power is cut
    found = disk.cut(tmp_path / "found", tmp_path / "looked-at")
    found.mount()
    try:
        # Then the next start finds the one, and not the other's bytes
        assert (found.path / "synced").read_bytes() == b"x" * 5000
        assert not (found.path / "written").exists() or b"y" not in (found.path / "written").read_bytes()
    finally:
        found.unmount()


@pytest.mark.long(minutes=1)
@pytest.mark.parametrize("engine", ["postgres", "redis"])
async def test_a_durable_server_loses_nothing_that_was_accepted(disk: CrashDisk, tmp_path: Path, engine: str):
    # PostgreSQL runs as another user, whom pytest's folders do not let pass
    with tempfile.TemporaryDirectory(prefix="tailrace-power-cut-") as folder:
        try:
            figures = await power_cut(Path(folder), 2, lambda what, share: None, engine)
        except ConfigError as error:
            none_to_be_had(f"power cuts of {engine}", str(error))
    assert figures["accepted"] > 1000
    assert figures["lost"] == 0


@pytest.mark.long(minutes=1.2)
@pytest.mark.timeout(400)
async def test_the_whole_platform_loses_nothing_that_it_accepted_or_settled(disk: CrashDisk, tmp_path: Path):
    # Given (by the fixture) that there are such disks here, when the power of all parts is cut again and again
    figures = await power_cut_sqlite(tmp_path / "durable", 3, lambda what, share: None)
    # Then what was accepted ends, and what was known to be over stays so
    assert figures["accepted"] >= 1000 and figures["known_as_settled"] > 600
    assert (figures["lost"], figures["again"], figures["broken"]) == (0, 0, 0)


@pytest.mark.long(minutes=1.7)
@pytest.mark.timeout(500)
async def test_a_profile_that_survives_less_is_seen_to(disk: CrashDisk, tmp_path: Path):
    figures = await power_cut_sqlite(tmp_path / "relaxed", 2, lambda what, share: None, durability="relaxed")
    assert figures["lost"] + figures["again"] > 0, "a check that sees nothing here says nothing of the durable profile"
