"""A place in a stream, as people say it."""

from __future__ import annotations

import pytest

from tailrace.model.errors import InvalidRequest
from tailrace.model.seek import Where, where

NOW = 1_790_000_000.0
#: First position of a millisecond of that year in a stream of Redis: nineteen digits.
OF_REDIS = int(NOW * 1000) << 20


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", Where(position=0)),
        ("12", Where(position=12)),
        (str(OF_REDIS), Where(position=OF_REDIS)),
        (str((1 << 63) - 1), Where(position=(1 << 63) - 1)),
        ("start", Where(edge="start")),
        ("end", Where(edge="end")),
        ("90m", Where(time=NOW - 5400)),
        ("2026-05-01T12:00+00:00", Where(time=1_777_636_800.0)),
    ],
)
def test_a_number_an_edge_or_a_time(text: str, expected: Where) -> None:
    assert where("--from", text, NOW) == expected


@pytest.mark.parametrize("text", ["", "lately", "-1", "9" * 19, "9" * 5000])
def test_anything_else_is_refused_by_its_option(text: str) -> None:
    with pytest.raises(InvalidRequest, match=r"--from is") as refused:
        where("--from", text, NOW)
    assert len(str(refused.value)) < 300
