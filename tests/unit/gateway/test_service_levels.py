"""Service levels: those that are passed, and the words for an operator."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from tailrace.gateway.config import GatewayConfig
from tailrace.gateway.rules.alerts import CODES, SeenBeside, alerts, dated, since_when
from tailrace.gateway.rules.recent_refusals import RECENT, Refusals
from tailrace.gateway.rules.service_levels import judged
from tailrace.model.alert import Alert, ObjectiveOverview
from tailrace.model.dead_letter import LetterRoom
from tailrace.model.gate import Gate
from tailrace.model.overview import Overview, SpoolOverview, TailerOverview
from tailrace.model.priority import Priority
from tailrace.model.reopening import Trouble

NOW = 1_000_000.0
LEVELS = GatewayConfig().service_levels.rule()

AGES = st.lists(
    st.tuples(
        st.sampled_from(["mail", "report", "scan"]),
        st.integers(0, 4),
        st.floats(0, 40_000),
        st.integers(0, 20),
    ),
    max_size=12,
    unique_by=lambda each: each[:2],
)


@given(AGES)
def test_each_level_has_the_worst_of_its_priority_and_is_alerted_exactly_when_that_is_beyond(
    ages: list[tuple[str, int, float, int]],
) -> None:
    levels = judged(ages, LEVELS)
    assert [each.priority for each in levels] == [priority.label for priority in Priority]
    found = {(each.code, each.subject): each for each in alerts(Overview(levels=levels), SeenBeside(), NOW)}
    for priority, level in zip(Priority, levels, strict=True):
        mine = [each for each in ages if each[1] == priority]
        assert level.waited == max((waited for _, _, waited, _ in mine), default=0)
        assert level.attempts == max((attempts for *_, attempts in mine), default=0)
        allowed = LEVELS[priority]
        late = [name for name, _, waited, attempts in mine if waited > allowed.waited or attempts > allowed.attempts]
        assert level.beyond == len(late)
        assert (("waiting", priority.label) in found) is (level.waited > allowed.waited)
        assert (("attempts", priority.label) in found) is (level.attempts > allowed.attempts)
        if level.waited > allowed.waited:
            alert = found["waiting", priority.label]
            # Since it was beyond, which the overview itself tells
            assert NOW - alert.since == pytest.approx(level.waited - allowed.waited, abs=1e-3)
            assert level.waited_by in late
            assert level.waited_by in alert.what


def test_the_defaults_are_those_that_are_asked_for_and_a_file_may_change_one_of_them() -> None:
    assert tuple(LEVELS[Priority.INTERACTIVE]) == (30, 2)
    assert tuple(LEVELS[Priority.EVENTUAL]) == (9000, 8)
    config = GatewayConfig.model_validate({"service_levels": {"interactive": {"attempts": 0}}})
    assert tuple(config.service_levels.rule()[Priority.INTERACTIVE]) == (30, 0)
    for wrong in ({"urgent": {}}, {"interactive": {"wait": 0}}, {"interactive": {"attempts": -1}}):
        with pytest.raises(ValidationError):
            GatewayConfig.model_validate({"service_levels": wrong})


def test_everything_that_is_not_as_it_should_be_is_told_with_what_to_do() -> None:
    # Given one of each
    tailers = [
        TailerOverview("fine", "log", "running"),
        TailerOverview(
            "stuck", "log", "running", healthy=False, idle=95, cause="no_worker", why="no worker runs charge"
        ),
        TailerOverview("ended", "log", "failed", detail="records are gone", cause="failed"),
        TailerOverview("frozen", "log", "clogged", healthy=False, since=NOW - 7, detail="charge is clogged"),
        TailerOverview("miscounted", "log", "running", unaccounted=3),
        TailerOverview("held", "log", "paused"),
    ]
    spool = SpoolOverview("filling", items=10, size=100, age=60, refused=1)
    levels = judged([("mail", 0, 31, 3)], LEVELS)
    held = {"queue.db": (300_000_000, ("7 (sqlite3)",))}
    missed = [
        ObjectiveOverview("start_delay", "mail", "interactive", 0.95, 0.9, 40, 5.0),
        ObjectiveOverview("accepted", "mail", "interactive", 0.999, 0.98, 40),
        ObjectiveOverview("accepted", "fine", "interactive", 0.999, 0.5, 19),  # too few to say so
    ]
    overview = Overview(tailers=tailers, spool=spool, levels=levels, dead_letters=5, held_logs=held, objectives=missed)
    gate = Gate("mail", "", "pause", "ann", "the mail server is down")
    seen = SeenBeside(
        "connection refused",
        10,
        1000,
        "the queue is full",
        NOW - 9,
        new_letters=2,
        gates=(gate,),
        troubles=(Trouble("delay service", NOW - 5, "the disk is full"),),
        ended="a peer",
        ended_since=NOW,
        full_rooms=(LetterRoom("mail", "acme & co", 7, 5), LetterRoom("scan", "", 5, 5)),
    )
    # When they are looked at, then each code is there, in order, but nothing of what is fine or paused on purpose
    found = alerts(overview, seen, NOW)
    assert [each.code for each in found] == sorted((each.code for each in found), key=CODES.index)
    assert {each.code for each in found} == set(CODES)
    assert all(each.what and each.todo for each in found)
    of = {(each.code, each.subject): each for each in found}
    assert not {"fine", "held"} & {subject for _, subject in of}
    # And those that know since when say so
    assert of["tailer", "stuck"].since == NOW - 95
    assert of["clogged", "frozen"].since == NOW - 7
    assert of["waiting", "interactive"].since == NOW - 1
    assert of["refusing", "submissions"].since == NOW - 9
    assert of["spool", "spool"].since == NOW - 60
    # And what to do names what it is about
    assert "7 dead letters, at most 5" in of["letters_full", "mail (tenant acme & co)"].what
    assert "dead purge --function mail --tenant 'acme & co'." in of["letters_full", "mail (tenant acme & co)"].todo
    assert "dead redrive --function scan;" in of["letters_full", "scan"].todo
    assert "100%" in of["spool", "spool"].what
    assert "pause by ann: the mail server is down" in of["waiting", "interactive"].what
    assert of["waiting", "interactive"].todo.endswith("tailrace gate resume mail")
    assert of["tailer", "ended"].todo.endswith("tailrace tailer resume ended")


def test_a_tailer_that_waits_for_its_store_is_not_said_to_wait_for_a_function() -> None:
    # Given two tailers that read nothing more, of which no function is frozen: one has just stopped, one a while ago
    full = "database or disk is full"
    fresh = TailerOverview("fresh", "queue", "clogged", detail=full)
    stale = TailerOverview("stale", "log", "clogged", healthy=False, idle=95, cause="store", why=full, detail=full)
    # When they are looked at
    found = alerts(Overview(tailers=[fresh, stale]), SeenBeside(), NOW)
    # Then both are told as tailers that get nowhere, with what to mend
    assert [(each.code, each.subject, each.what) for each in found] == [("tailer", n, full) for n in ("fresh", "stale")]
    assert not any("function" in each.todo for each in found)
    assert "store" in found[1].todo


@given(st.lists(st.sets(st.sampled_from("abc")), max_size=12))
def test_what_was_there_a_moment_ago_keeps_its_since_and_what_comes_back_begins_anew(looks: list[set[str]]) -> None:
    known: dict[tuple[str, str], float] = {}
    began: dict[str, int] = {}
    for at, subjects in enumerate(looks, 1):
        began = {subject: began.get(subject, at) for subject in subjects}
        found = dated([Alert("audit", each, 0.0, "what", "todo") for each in sorted(subjects)], known, at)
        known = since_when(found)
        assert {each.subject: each.since for each in found} == began


@given(st.lists(st.floats(0.1, 200), min_size=1, max_size=20), st.floats(0, 200))
def test_refusals_go_on_until_a_minute_passed_without_one(gaps: list[float], after: float) -> None:
    refusals, now, since = Refusals(), NOW, NOW
    for index, gap in enumerate(gaps):
        now += gap
        if index == 0 or gap > RECENT:
            since = now
        refusals.note(f"refusal {index}", now)
    expected = (f"refusal {len(gaps) - 1}", since) if after <= RECENT else ("", 0.0)
    if abs(after - RECENT) > 1e-6:
        assert refusals.now(now + after) == expected


def test_nothing_was_refused_at_first() -> None:
    assert Refusals().now(NOW) == ("", 0.0)
