"""Notices in the run directory: addresses of parts, for as long as they live; no file that somebody left or laid out
counts."""

from __future__ import annotations

import fcntl
import grp
import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tailrace.foundation import notices as rules
from tailrace.foundation.notices import Posted, dialable, notices
from tailrace.foundation.run_dir import VARIABLE, RunDir

#: Tells an address, says so, and lives until it is killed.
TELLS = """
import sys
from pathlib import Path
from tailrace.foundation.notices import Posted
from tailrace.foundation.run_dir import RunDir
run_dir = RunDir(Path(sys.argv[1]))
run_dir.open()
posted = Posted(run_dir, "gateway")
posted.post("127.0.0.1:9000", "data in /theirs")
print("told", flush=True)
sys.stdin.read()
"""
FACTS = {"address": "127.0.0.1:1", "pid": 1, "home": "", "network": 0}


@pytest.fixture
def run_dir(tmp_path: Path) -> Iterator[RunDir]:
    made = RunDir(tmp_path / "run")
    made.open()
    yield made
    made.close()


def told(run_dir: RunDir, part: str = "gateway") -> list[str]:
    return [each.address for each in notices(part, {VARIABLE: str(run_dir.path)})]


def files(run_dir: RunDir) -> list[Path]:
    return sorted(run_dir.path.glob("*.notice"))


def test_it_is_there_from_its_telling_to_its_end(run_dir: RunDir) -> None:
    # Given a gateway and a scheduler that tell where they listen
    gateway, scheduler = Posted(run_dir, "gateway"), Posted(run_dir, "scheduler")
    gateway.post("127.0.0.1:9000", "data in /here")
    scheduler.post("127.0.0.1:9002", "gateway at 127.0.0.1:9000")
    # Then each is found by its kind, with what tells it from others, and by nobody else's processes
    [found] = notices("gateway", {VARIABLE: str(run_dir.path)})
    assert (found.address, found.pid, found.home) == ("127.0.0.1:9000", os.getpid(), "data in /here")
    assert told(run_dir, "scheduler") == ["127.0.0.1:9002"]
    assert {stat.S_IMODE(path.stat().st_mode) for path in files(run_dir)} == {0o600}
    # And at another address from then on, and nowhere after its end
    gateway.post("127.0.0.1:9004", "data in /here")
    assert told(run_dir) == ["127.0.0.1:9004"]
    gateway.withdraw(), gateway.withdraw(), scheduler.withdraw()
    assert told(run_dir) == [] and files(run_dir) == []


def test_that_of_a_process_that_was_killed_counts_for_nothing_and_is_removed(run_dir: RunDir) -> None:
    # Given a process that tells where it listens
    with subprocess.Popen(
        [sys.executable, "-c", TELLS, str(run_dir.path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None and other.stdout.readline() == "told\n"
        assert told(run_dir) == ["127.0.0.1:9000"]
        # When it is killed
        other.send_signal(signal.SIGKILL)
        other.wait()
    # Then its file is left, until somebody looks
    assert len(files(run_dir)) == 1
    assert told(run_dir) == [] and files(run_dir) == []


def test_what_was_left_behind_is_removed_by_the_next_one_that_tells(run_dir: RunDir) -> None:
    """Otherwise parts that die again and again, and of which nobody asks, would fill the directory."""
    (run_dir.path / "scheduler.0123456789abcdef.notice").write_text(json.dumps(FACTS))
    (run_dir.path / "gateway.0123456789abcdef.notice").write_text("")  # it died before it wrote
    posted = Posted(run_dir, "gateway")
    posted.post("127.0.0.1:9000", "")
    assert len(files(run_dir)) == 1
    posted.withdraw()


def test_the_group_may_read_it(tmp_path: Path) -> None:
    run_dir = RunDir(tmp_path / "run", grp.getgrgid(os.getegid()).gr_name)
    run_dir.open()
    posted = Posted(run_dir, "gateway")
    posted.post("127.0.0.1:9000", "")
    [path] = files(run_dir)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640 and told(run_dir) == ["127.0.0.1:9000"]
    posted.withdraw()
    run_dir.close()


def held(path: Path, content: bytes) -> int:
    """A file that this process holds, with any content."""
    made = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(made, fcntl.LOCK_EX)
    os.write(made, content)
    return made


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"\xff",
        b"[" * 4000,
        json.dumps({**FACTS, "address": "127.0.0.1"}).encode(),
        json.dumps({**FACTS, "address": "127.0.0.1:1\n"}).encode(),
        json.dumps({**FACTS, "address": "unix:/tmp/x:1"}).encode(),
        json.dumps({**FACTS, "address": 7}).encode(),
        json.dumps({**FACTS, "pid": "1"}).encode(),
        json.dumps({**FACTS, "home": "x" * 5000}).encode(),
    ],
)
def test_what_is_no_notice_is_passed_by(run_dir: RunDir, content: bytes) -> None:
    file = held(run_dir.path / "gateway.0123456789abcdef.notice", content)
    assert told(run_dir) == []
    os.close(file)


def test_links_pipes_and_other_names_are_passed_by_and_left_alone(run_dir: RunDir, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text(json.dumps(FACTS))
    (run_dir.path / "gateway.00000000000000aa.notice").symlink_to(tmp_path / "elsewhere")
    os.mkfifo(run_dir.path / "gateway.00000000000000bb.notice")
    (run_dir.path / "gateway.00000000000000cc.notice").mkdir()
    (run_dir.path / "gateway.notice").write_text(json.dumps(FACTS))
    assert told(run_dir) == []
    assert len(files(run_dir)) == 4 and (tmp_path / "elsewhere").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_somebody_elses_is_passed_by(run_dir: RunDir) -> None:
    path = run_dir.path / "gateway.0123456789abcdef.notice"
    file = held(path, json.dumps(FACTS).encode())
    assert told(run_dir) == ["127.0.0.1:1"]
    os.chown(path, 65534, 65534)
    assert told(run_dir) == [] and path.exists()
    os.close(file)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_an_operator_finds_those_of_the_directory_that_was_chosen_and_removes_nothing(run_dir: RunDir) -> None:
    # Given a directory of another user, where one listens and one did
    live = held(run_dir.path / "gateway.00000000000000aa.notice", json.dumps(FACTS).encode())
    (run_dir.path / "gateway.00000000000000bb.notice").write_text(json.dumps(FACTS))
    for path in (run_dir.path, *files(run_dir)):
        os.chown(path, 65534, 65534)
    # Then what lives is found, and what is left is left to its user
    [found] = notices("gateway", {VARIABLE: str(run_dir.path)})
    assert (found.address, found.owner, len(files(run_dir))) == ("127.0.0.1:1", 65534, 2)
    os.close(live)


def test_what_is_told_in_another_network_is_not_of_this_machine(run_dir: RunDir) -> None:
    """A container that shares the directory has a loopback of its own."""
    here = Path("/proc/self/ns/net").stat().st_ino
    other = held(run_dir.path / "gateway.00000000000000aa.notice", json.dumps({**FACTS, "network": here + 1}).encode())
    assert told(run_dir) == []
    same = {**FACTS, "address": "127.0.0.1:2", "network": here}
    mine = held(run_dir.path / "gateway.00000000000000bb.notice", json.dumps(same).encode())
    assert told(run_dir) == ["127.0.0.1:2"]
    os.close(other), os.close(mine)


def test_a_home_cannot_drive_a_terminal(run_dir: RunDir) -> None:
    posted = Posted(run_dir, "gateway")
    posted.post("127.0.0.1:9000", "data in /\x1b[2J" + "x" * 10_000)
    [found] = notices("gateway", {VARIABLE: str(run_dir.path)})
    assert found.home.isprintable() and len(found.home) <= rules.HOME_LENGTH
    posted.withdraw()


def test_a_bounded_number_is_read(run_dir: RunDir, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "MOST", 3)
    posted = [Posted(run_dir, "gateway") for _ in range(5)]
    for number, each in enumerate(posted):
        each.post(f"127.0.0.1:{9000 + number}", "")
    assert len(told(run_dir)) == 3
    for each in posted:
        each.withdraw()


def test_one_that_is_taken_for_a_leftover_while_it_is_made_is_made_again(
    run_dir: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given somebody who looks just before a new file is held, and once more just before it is written
    real, looks = fcntl.flock, iter([True, True])

    def flock(file: int, how: int) -> None:
        if how & fcntl.LOCK_EX and next(looks, False):
            monkeypatch.setattr(rules.fcntl, "flock", real)
            told(run_dir)
            monkeypatch.setattr(rules.fcntl, "flock", flock)
        real(file, how)

    monkeypatch.setattr(rules.fcntl, "flock", flock)
    posted = Posted(run_dir, "gateway")
    posted.post("127.0.0.1:9000", "")
    assert told(run_dir) == ["127.0.0.1:9000"] and len(files(run_dir)) == 1
    posted.withdraw()


def test_without_locks_nothing_is_told_and_nothing_believed(run_dir: RunDir, monkeypatch: pytest.MonkeyPatch) -> None:
    (run_dir.path / "gateway.0123456789abcdef.notice").write_text(json.dumps(FACTS))

    def flock(file: int, how: int) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(rules.fcntl, "flock", flock)
    with pytest.raises(OSError, match="not supported"):
        Posted(run_dir, "gateway").post("127.0.0.1:9000", "")
    assert told(run_dir) == [] and len(files(run_dir)) == 1


def test_what_listens_everywhere_is_dialled_on_loopback() -> None:
    assert dialable("0.0.0.0:1") == "127.0.0.1:1" and dialable("[::]:1") == "[::1]:1"
    assert dialable("10.0.0.5:1") == "10.0.0.5:1" and dialable("localhost:1") == "localhost:1"
