"""The kernel's list of processes, and ends that hit the right one."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tailrace.runtime.process_table import VARIABLE, end, end_until_none_is_left, listed, look_up
from tailrace.runtime.rules.ending import Process, Ward

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="this system has no /proc")


def _sleeper(name: str = "sleep", **environment: str) -> subprocess.Popen[bytes]:
    """Starts a sleeping process of any name; it says when it runs, so that its environment is its own by then."""
    named = f"import pathlib, time; pathlib.Path('/proc/self/comm').write_text({name!r})"
    code = f"{named}; print(flush=True); time.sleep(600)"
    process = subprocess.Popen([sys.executable, "-I", "-c", code], stdout=subprocess.PIPE, env=environment)
    assert process.stdout is not None
    process.stdout.readline()
    return process


@pytest.mark.parametrize("environment", [{VARIABLE: "abc"}, {"A": "1", VARIABLE: "abc", "Z": ""}])
def test_a_process_is_found_with_its_parent_and_mark_whatever_its_name(environment: dict[str, str]) -> None:
    with _sleeper("a) R 1 (b", **environment) as process:
        try:
            (found,) = [each for each in listed() if each.pid == process.pid]
            assert (found.parent, found.group, found.mark, found.dead) == (os.getpid(), os.getpgrp(), "abc", False)
            assert [each.mark for each in listed(found.start + 1) if each.pid == process.pid] == [""]
        finally:
            process.kill()


def test_no_mark_is_taken_for_one() -> None:
    with _sleeper(**{f"NOT_{VARIABLE}": "abc", "X": f"{VARIABLE}=abc"}) as process:
        try:
            found = look_up(process.pid)
            assert found is not None and found.mark == ""
        finally:
            process.kill()


def test_whoever_has_the_number_now_is_not_ended() -> None:
    with _sleeper() as process:
        found = look_up(process.pid)
        assert found is not None
        former = Process(found.pid, found.parent, found.group, found.session, found.start - 1)
        assert end(former)
        assert process.poll() is None
        assert end(found)
        assert process.wait(10) == -9
        assert end(found)  # gone already


def test_rounds_end_when_none_is_left() -> None:
    with _sleeper(**{VARIABLE: "mark of this test"}) as process:
        assert end_until_none_is_left(Ward("mark of this test"), {os.getpid()}, 10.0)
        assert process.poll() is not None or process.wait(1) == -9


def test_who_cannot_look_does_not_say_that_none_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(os, "open", full)
    assert not end_until_none_is_left(Ward("mark of this test"), {os.getpid()}, 0.01)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may end everything")
def test_who_may_not_be_ended_is_not_waited_for() -> None:
    first = look_up(1)
    assert first is not None
    assert not end(first)
