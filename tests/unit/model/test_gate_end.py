"""The end of a gate, as people say it."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from tailrace.model.errors import InvalidRequest
from tailrace.model.gate_end import gate_end

NOON = datetime(2026, 3, 28, 12, tzinfo=UTC).timestamp()


def at(*parts: int, zone: str = "UTC") -> float:
    return datetime(*parts, tzinfo=ZoneInfo(zone)).timestamp()  # type: ignore[arg-type, misc]


def test_a_gate_without_an_end_stays() -> None:
    assert gate_end("", "", NOON, UTC) == 0.0


def test_a_gate_lasts_as_long_as_is_said() -> None:
    assert gate_end("2h", "", NOON, UTC) == NOON + 7200


def test_a_time_of_day_is_the_next_one() -> None:
    assert gate_end("", "18:00", NOON, UTC) == at(2026, 3, 28, 18)
    assert gate_end("", "12:00", NOON, UTC) == at(2026, 3, 29, 12)


def test_the_next_day_may_have_another_offset() -> None:
    # Given that clocks in Zurich go forward in the night after
    zone = ZoneInfo("Europe/Zurich")
    # When a gate is to end at a time of tomorrow, Then it is that time on the clocks of tomorrow
    assert gate_end("", "08:00", NOON, zone) == at(2026, 3, 29, 8, zone="Europe/Zurich")
    assert gate_end("", "08:00+00:00", NOON, zone) == at(2026, 3, 29, 8)


def test_a_time_without_a_zone_is_local() -> None:
    assert gate_end("", "2026-05-01T12:00", NOON, ZoneInfo("Asia/Tokyo")) == at(2026, 5, 1, 12, zone="Asia/Tokyo")
    assert gate_end("", "2026-05-01T12:00Z", NOON, ZoneInfo("Asia/Tokyo")) == at(2026, 5, 1, 12)


def test_a_local_time_has_the_offset_of_its_own_day(monkeypatch: pytest.MonkeyPatch) -> None:
    # Given a machine whose clocks go forward in the night after
    try:
        monkeypatch.setenv("TZ", "Europe/Zurich")
        time.tzset()
        # When a gate is to end at a time after that, Then it is that time on the clocks of then
        assert gate_end("", "2026-05-01T12:00", NOON) == at(2026, 5, 1, 12, zone="Europe/Zurich")
        assert gate_end("", "08:00", NOON) == at(2026, 3, 29, 8, zone="Europe/Zurich")
        assert gate_end("", "18:00", NOON) == at(2026, 3, 28, 18, zone="Europe/Zurich")
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize(
    ("lasting", "until", "said"),
    [
        ("2h", "18:00", "give one of them"),
        ("soon", "", "--for"),
        ("0s", "", "above 0"),
        ("", "tomorrow", "a time of day such as"),
        ("", "25:00", "a time of day such as"),
        ("", "2026-03-01T12:00", "is over"),
        ("", "99999-01-01", "a time of day such as"),
    ],
)
def test_what_is_no_end_is_refused_by_its_option(lasting: str, until: str, said: str) -> None:
    with pytest.raises(InvalidRequest, match=said):
        gate_end(lasting, until, NOON, UTC)
