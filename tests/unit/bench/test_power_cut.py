"""The scenario `power_cut`: what is said of what was lost, and the disk that is cut off."""

import os
import sys
from pathlib import Path

import pytest

from tailrace.bench.crash_disk import CrashDisk
from tailrace.bench.power_cut import judged, power_cut
from tailrace.sdk.model.errors import ConfigError, InvalidRequest


def test_what_is_lost_counts_from_the_oldest_of_it():
    known = {"a": 10.0, "b": 11.5, "c": 11.9}
    assert judged(known, ["b", "c"], cut=12.0) == (pytest.approx(0.5), 2)
    assert judged(known, [], cut=12.0) == (0.0, 0)


async def test_an_engine_must_be_known(tmp_path: Path):
    with pytest.raises(
        InvalidRequest, match="unknown engine 'sqlite': expected one of postgres, redis, redis-everysec"
    ):
        await power_cut(tmp_path, 1, lambda what, share: None, "sqlite")


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
