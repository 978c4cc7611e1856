"""One process per data directory, and clear words for every directory that cannot be one."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tailrace.foundation.births import file_system
from tailrace.model.errors import AlreadyInUse, ConfigError, StoreFull
from tailrace.stores.data_dir import LOCK_NAME, DataDir, refuse_network

_HOLD = """
import sys, time
from pathlib import Path
from tailrace.stores.data_dir import DataDir
held = DataDir(Path(sys.argv[1]))
held.open()
print("held", flush=True)
time.sleep(60)
"""


def test_a_missing_directory_is_made_and_its_first_run_is_clean(tmp_path: Path) -> None:
    with DataDir(tmp_path / "a" / "b") as held:
        assert held.path.is_dir()
        assert not held.unclean


def test_a_second_holder_is_told_who_has_it_and_where(tmp_path: Path) -> None:
    with DataDir(tmp_path), pytest.raises(AlreadyInUse) as refused:
        DataDir(tmp_path).open()
    assert str(os.getpid()) in str(refused.value)
    assert str(tmp_path) in str(refused.value)


def test_open_and_close_twice_are_harmless(tmp_path: Path) -> None:
    held = DataDir(tmp_path)
    held.open()
    held.open()
    held.close()
    held.close()
    with DataDir(tmp_path) as again:
        assert not again.unclean


def test_a_killed_holder_frees_the_directory_and_leaves_it_unclean(tmp_path: Path) -> None:
    # Given a process that holds the directory
    process = subprocess.Popen([sys.executable, "-c", _HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    with pytest.raises(AlreadyInUse, match=str(process.pid)):
        DataDir(tmp_path).open()
    # When it is killed
    process.send_signal(signal.SIGKILL)
    process.communicate()
    # Then the next one gets it, knows, and leaves it clean
    with DataDir(tmp_path) as held:
        assert held.unclean
    with DataDir(tmp_path) as held:
        assert not held.unclean


def test_a_file_in_its_place_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(ConfigError, match="is not a directory") as refused:
            DataDir(path).open()
        assert str(path) in str(refused.value)


@pytest.mark.parametrize(
    ("code", "error", "words"),
    [
        (errno.EACCES, ConfigError, "cannot be written by this user"),
        (errno.EROFS, ConfigError, "cannot be written by this user"),
        (errno.ENOSPC, StoreFull, "Free some space"),
        (errno.EMFILE, ConfigError, "cannot be used"),
    ],
)
def test_what_the_system_refuses_is_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, error: type[Exception], words: str
) -> None:
    def refuse(*_: object) -> int:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr("tailrace.stores.data_dir.os.open", refuse)
    with pytest.raises(error, match=words) as refused:
        DataDir(tmp_path).open()
    assert str(tmp_path) in str(refused.value)


def test_a_refused_lock_leaves_no_file_open(tmp_path: Path) -> None:
    with DataDir(tmp_path):
        before = len(list(Path("/proc/self/fd").iterdir()))
        with pytest.raises(AlreadyInUse):
            DataDir(tmp_path).open()
        assert len(list(Path("/proc/self/fd").iterdir())) == before
    assert (tmp_path / LOCK_NAME).read_bytes() == b""


MOUNTS = """\
/dev/sda1 / ext4 rw 0 0
server:/share /mnt/share nfs4 rw 0 0
/dev/sdb1 /mnt/share/local xfs rw 0 0
//server/x /mnt/with\\040space cifs rw 0 0
/dev/sdc1 /twice ext4 rw 0 0
server:/y /twice fuse.sshfs rw 0 0
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/home/ann", "ext4"),
        ("/mnt/share", "nfs4"),
        ("/mnt/share/data", "nfs4"),
        ("/mnt/shared", "ext4"),
        ("/mnt/share/local/data", "xfs"),
        ("/mnt/with space/data", "cifs"),
        ("/twice/data", "fuse.sshfs"),
    ],
)
def test_the_deepest_and_latest_mount_tells_the_file_system(path: str, kind: str) -> None:
    assert file_system(Path(path), MOUNTS) == kind


def test_a_network_file_system_is_refused_and_named(tmp_path: Path) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(f"server:/share {tmp_path.resolve()} nfs4 rw 0 0\n")
    with pytest.raises(ConfigError, match=r"network file system \(nfs4\)"):
        refuse_network(tmp_path / "data", mounts)


def test_a_system_that_does_not_tell_its_mounts_is_trusted(tmp_path: Path) -> None:
    refuse_network(tmp_path, tmp_path / "nothing")


def test_files_that_others_could_read_are_closed_to_them(tmp_path: Path) -> None:
    # Given a directory that a former version left, with a file and a link to one that is not of it
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("")
    elsewhere.chmod(0o644)
    data = tmp_path / "data"
    data.mkdir()
    (data / "queue.db").write_text("")
    (data / "queue.db").chmod(0o664)
    (data / "link").symlink_to(elsewhere)
    # When it is taken, then its files are its user's alone, and nothing else was touched
    with DataDir(data):
        assert (data / "queue.db").stat().st_mode & 0o777 == 0o600
    assert elsewhere.stat().st_mode & 0o777 == 0o644
