"""Output that cannot be written fails nobody, and lost output is told."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tailrace.runtime.function_output import forgiving


@pytest.mark.parametrize("unbuffered", [False, True])
def test_what_cannot_be_written_fails_nobody_and_is_told_when_it_can_be(tmp_path: Path, unbuffered: bool) -> None:
    # Given a stream whose reader has gone
    read, write = os.pipe()
    os.close(read)
    with open(write, "w", encoding="ascii", errors="backslashreplace") as stream:
        stream.reconfigure(write_through=unbuffered)
        out = forgiving(stream)
        # When more is printed than it gathers, Then nothing is raised
        for _ in range(50):
            print("x" * 999, file=out)
        out.flush()
        # When it can be written again
        with (tmp_path / "log").open("wb") as file:
            os.dup2(file.fileno(), write)
        print("again, \N{SNOWMAN}", file=out)
        print("and again", file=out, flush=True)
    # Then the log says what was lost, and goes on as the stream would have
    lost = "\n[tailrace: 50000 bytes printed here were lost: Broken pipe]\n"
    assert (tmp_path / "log").read_text() == f"{lost}again, \\u2603\nand again\n"


def test_a_stream_that_is_forgiving_is_like_the_one_before() -> None:
    # Given the standard error of a process, When it is made forgiving, Then who looks at it sees no other one
    names = ("encoding", "errors", "line_buffering", "write_through", "name", "mode")
    before: Any = sys.__stderr__
    after = forgiving(before)
    assert after is not before and after.fileno() == before.fileno() and after.isatty() == before.isatty()
    assert {name: getattr(after, name) for name in names} == {name: getattr(before, name) for name in names}


def test_a_process_without_streams_stays_without() -> None:
    none: Any = None
    assert forgiving(none) is None
