"""The scenario `due`: its input and its report."""

import itertools
from pathlib import Path

import pytest

from tailrace.bench import due
from tailrace.bench.due_functions import DUE_FUNCTIONS, _Journal, latenesses
from tailrace.bench.plot import Bar, bars


def test_ten_thousand_items_come_due_each_second_over_a_hundred_functions():
    items = list(itertools.chain.from_iterable(due.timed_items(20_000, 1000.0)))
    assert [sum(second <= item.due < second + 1 for item in items) for second in (1000, 1001)] == [10_000] * 2
    assert len({item.kind.function for item in items}) == DUE_FUNCTIONS
    # And each item's payload has its own time, to the microsecond.
    assert items[12345].payload == b'{"due": 1001.234500}' and items[12345].due == 1001.2345


def test_what_started_before_its_time_is_told():
    # A float of a wall clock's microseconds is exact to less than one of them.
    assert due.summary([0.01, 0.02, -1e-6]) == {
        "p50_s": 0.01,
        "p95_s": 0.02,
        "p99_s": 0.02,
        "slowest_s": 0.02,
        "early": 0.0,
    }
    assert due.summary([-0.001, 0.5])["early"] == 1.0


def test_what_processes_note_is_read_while_they_write(tmp_path: Path):
    journal = _Journal(str(tmp_path))
    journal.note(0.25)
    journal.note(-1.5)
    (tmp_path / "torn").write_bytes(b"\0" * 8 + b"\1\2\3")
    assert sorted(latenesses(tmp_path)) == [-1.5, 0.0, 0.25]


@pytest.mark.parametrize(("value", "colour"), [(0.0, "#2a7f62"), (3.0, "#b3452c")])
def test_a_figure_of_which_none_is_asked_is_drawn_too(value: float, colour: str):
    assert colour in bars("a title", "a note", [Bar("early", value, 0, "", False)])
