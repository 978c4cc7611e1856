"""The demo's view: any picture fits 80 columns, with and without a terminal."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from tailrace.demo.journal import DemoVerdict
from tailrace.demo.view import WIDTH, Picture, draw, line
from tailrace.model.overview import Overview, TailerOverview
from tailrace.wire.v1 import scheduler_pb2 as pb

EVENTS = [
    f"{number:4}.0 s  half-way: SIGKILL to the worker and all of its processes, and what they ran"
    for number in range(9)
]


def full() -> Picture:
    return Picture(
        seconds=12.3,
        verdict=DemoVerdict(listed=1792, indexed=900, dead_lettered=3, summarised=850, retried=50, throttled=35),
        overview=Overview(
            queue={"new": 5},
            tailers=[TailerOverview("stdlib", "directory", "disconnected", 1790, 1200, 80, 3, 1790, 3, 7)],
            delay={"delay.1s": 123, "delay.5s": 4, "delay.30s": 0, "due.index": 1_000_000, "due.summarise": 1_000_000},
            dead_letters=3,
        ),
        scheduler=pb.InspectReply(
            lanes=[pb.Lane(function="summarise", priority=3, waiting=100, running=64, reason="waits for a worker")],
            outcomes=[pb.OutcomeCount(outcome=number, count=10_000) for number in range(1, 10)],
        ),
        events=EVENTS,
    )


@pytest.mark.parametrize("picture", [Picture(0.0, DemoVerdict()), full()])
def test_any_picture_fits_eighty_columns(picture: Picture) -> None:
    out = io.StringIO()
    Console(file=out, width=WIDTH, force_terminal=False).print(draw(picture))
    rows = out.getvalue().splitlines()
    assert max(map(len, rows)) <= WIDTH
    assert len(rows) <= 24


def test_it_shows_what_matters() -> None:
    out = io.StringIO()
    Console(file=out, width=WIDTH).print(draw(full()))
    text = out.getvalue()
    for shown in (
        "stdlib",
        "summarise / reporting",
        "delay.1s 123",
        "retry 10000",
        "903 of 1792 files",
        "waits for a worker",
    ):
        assert shown in text


def test_one_line_without_a_terminal() -> None:
    text = line(full())
    assert "\n" not in text
    assert "903/1792 files" in text and "50 retried" in text
