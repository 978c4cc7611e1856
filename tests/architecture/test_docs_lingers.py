"""The page of lingers says what the code does, and leaves none out."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

import tailrace
from tailrace.model import linger
from tailrace.model.linger import Linger

PAGE = Path(tailrace.__file__).parent / "docs/lingers.md"
ROWS = re.findall(r"^\| .* \| ([\d.]+) \| `([\w.]+)` \| .* \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)


def test_each_is_as_long_as_the_page_says() -> None:
    for seconds, place in ROWS:
        module, _, name = place.rpartition(".")
        found = getattr(import_module(f"tailrace.{module}"), name)
        found = found[0] if isinstance(found, tuple) else found
        assert found == float(seconds), place


def test_none_is_left_out() -> None:
    known = {f"model.linger.{name}" for name, value in vars(linger).items() if isinstance(value, Linger)}
    assert known <= {place for _, place in ROWS}


def test_what_is_left_of_one_is_never_more_than_all_of_it() -> None:
    # Given one of 50 ms that began at 100 s
    wait = Linger(0.05)
    # Then it is over after that, and a clock that went back makes it no longer
    assert wait.rest(100.0, 100.0) == pytest.approx(0.05)
    assert 0.0 < wait.rest(100.0, 100.03) < 0.021
    assert wait.rest(100.0, 101.0) == 0.0
    assert wait.rest(100.0, 40.0) == 0.05
