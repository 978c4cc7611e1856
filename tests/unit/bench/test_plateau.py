"""The scenario `plateau`: run whole, small, on a file; its report of growth, and its drawing."""

from pathlib import Path

import pytest

from tailrace.bench.plateau import growth, plateau, series
from tailrace.bench.plot import curve
from tailrace.model.errors import InvalidRequest


def test_growth_is_that_of_the_last_quarter():
    assert growth([1.0, 2.0, 3.0, 4.0, 4.0, 4.0, 4.0, 4.0]) == 1.0
    assert growth([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]) == 1.333
    assert growth([]) == 0.0


async def test_each_look_is_told_in_order(tmp_path: Path):
    figures = await plateau(tmp_path, 2000, lambda what, share: None)
    assert (figures["items"], figures["kept"]) == (2000, 100)
    sizes = series(figures)
    assert len(sizes) == 8 and sizes[-1] == pytest.approx(figures["file_mb"] + figures["log_mb"], abs=0.02)


async def test_an_engine_must_be_known(tmp_path: Path):
    with pytest.raises(InvalidRequest, match="unknown engine 'rabbit'"):
        await plateau(tmp_path, 10, lambda what, share: None, "rabbit")


def test_a_curve_tells_its_most_and_its_end():
    drawn = curve("a title", "a note", [1.0, 300.0, 200.0], "MB")
    assert ">300<" in drawn and ">200 MB<" in drawn and drawn.rstrip().endswith("</svg>")
    assert "polyline" in curve("a title", "a note", [], "MB")
