"""`schedules.yaml`."""

from __future__ import annotations

import pytest

from tailrace.foundation.config import loads
from tailrace.gateway.schedules import SchedulesConfig
from tailrace.model.errors import ConfigError
from tailrace.model.schedule import CatchUp, Origin, Overlap, Schedule


def test_a_file_is_its_schedules() -> None:
    [night, once, ping] = loads(
        """
schedules:
  ping: {function: f, every: 30s, overlap: queue, catch_up: all, catch_up_max: 5, jitter: 2s, grace: 1m}
  night: {function: make:report, cron: "0 3 * * *", timezone: Europe/Berlin, arguments: {day: 1}, until: "2030-01-01"}
  once: {function: f, at: "2026-07-01T12:00", timezone: Europe/Berlin}
""",
        "schedules.yaml",
        SchedulesConfig,
    ).kept()
    made = {"created_by": "schedules.yaml", "origin": Origin.FILE}
    assert ping == Schedule("ping", "f", every=30.0, overlap=Overlap.QUEUE, catch_up=CatchUp.ALL, catch_up_max=5,
                            jitter=2.0, **made)  # fmt: skip
    assert night == Schedule("night", "make:report", b'{"day":1}', cron="0 3 * * *", timezone="Europe/Berlin",
                             until=1893452400.0, **made)  # fmt: skip
    assert once == Schedule("once", "f", at=1782900000.0, timezone="Europe/Berlin", catch_up=CatchUp.LATEST, **made)


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("{cron: '0 3 * * *'}", "s.yaml:2: key 'schedules.a.function' is missing"),
        ("{function: f, crn: '* * * * *'}", "did you mean 'cron'?"),
        (
            "{function: f, cron: '0 3 * 13 *'}",
            's.yaml:2: schedules.a.cron: "0 3 * 13 *", column 7: bad month "13"',
        ),
        ("{function: f, every: 1h, timezone: Berlin}", "schedules.a.timezone: timezone 'Berlin' is not known"),
        ("{function: f, every: soon}", "schedules.a.every: 'soon' is not a duration"),
        ("{function: f}", "schedules.a: expected one of cron, every and at, got none of them"),
        ("{function: f, at: tomorrow}", "schedules.a: at is 'tomorrow': expected a time"),
        ("{function: f, every: 1h, overlap: never}", "schedules.a.overlap: expected 'skip', 'queue' or 'allow'"),
        ("{function: f, every: 1h, catch_up: all}", "overlap skip would run one"),
        ("{function: f, every: 1h, priority: urgent}", "schedules.a.priority: unknown priority 'urgent'"),
        ("{function: f, every: 1h, catch_up_max: 9999}", "catch_up_max"),
    ],
)
def test_a_mistake_is_named_with_its_line_and_key(entry: str, said: str) -> None:
    with pytest.raises(ConfigError) as refused:
        loads(f"schedules:\n  a: {entry}\n", "s.yaml", SchedulesConfig)
    assert said in str(refused.value) and str(refused.value).startswith("s.yaml:2: ")
