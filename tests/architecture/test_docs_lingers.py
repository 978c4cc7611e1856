"""The page of lingers agrees with the code, and leaves none out."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

import tailrace
from tailrace.model.linger import Linger

ROOT = Path(tailrace.__path__[0])
#: The packages that are installed, without those that look at it.
ROOMS = ("model", "wire", "foundation", "sdk", "stores", "tailers", "scheduler", "delay_service", "runtime", "gateway")
PAGE = ROOT / "docs/lingers.md"
ROWS = re.findall(r"^\| .* \| ([\d.]+) \| `([\w.]+)` \| .* \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)


def test_each_is_as_long_as_the_page_says() -> None:
    for seconds, place in ROWS:
        module, _, name = place.rpartition(".")
        found = getattr(import_module(f"tailrace.{module}"), name)
        assert found == Linger(float(seconds)), place


def test_none_is_left_out() -> None:
    # Given every constant of the package that is a linger, at the file that sets it
    known = {
        f"{'.'.join(file.relative_to(ROOT).with_suffix('').parts)}.{name}"
        for room in ROOMS
        for file in (ROOT / room).rglob("*.py")
        for name in re.findall(r"^(\w+) = Linger\(", file.read_text(encoding="utf-8"), re.MULTILINE)
    }
    # Then the page has just these
    assert len(known) > 10
    assert known == {place for _, place in ROWS}


def test_what_is_left_of_one_is_never_more_than_all_of_it() -> None:
    # Given one of 50 ms that began at 100 s
    wait = Linger(0.05)
    # Then it is over after that, and a clock that went back makes it no longer
    assert wait.rest(100.0, 100.0) == pytest.approx(0.05)
    assert 0.0 < wait.rest(100.0, 100.03) < 0.021
    assert wait.rest(100.0, 101.0) == 0.0
    assert wait.rest(100.0, 40.0) == 0.05
