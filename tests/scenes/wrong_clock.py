"""A platform whose processes read the wall clock that a test sets."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tailrace.assembly.platform import Platform

#: Every process of the platform reads its wall clock so: ours, and what the file says.
PLANTED = """
import os, time
_time = time.time
def planted():
    try:
        return _time() + float(open(os.environ["TAILRACE_TEST_CLOCK"]).read() or 0)
    except (OSError, KeyError):
        return _time()
time.time = planted
"""


def with_clock(folder: Path, monkeypatch: pytest.MonkeyPatch, functions: Path, **more: Any) -> Platform:
    """A platform in a folder, not started yet, whose clock is ahead by the seconds in its file `clock`. Its functions
    find the path of a journal in the environment (TAILRACE_TEST_JOURNAL)."""
    (folder / "planted").mkdir()
    (folder / "planted" / "sitecustomize.py").write_text(PLANTED)
    monkeypatch.setenv("PYTHONPATH", str(folder / "planted"), prepend=os.pathsep)
    monkeypatch.setenv("TAILRACE_TEST_CLOCK", str(folder / "clock"))
    environment = {"TAILRACE_TEST_JOURNAL": str(folder / "journal")}
    return Platform(folder / "data", [str(functions)], environment=environment, **more)
