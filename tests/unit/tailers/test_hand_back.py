"""Items that are handed back go out again at once, and time and again only after a pause that doubles; none is
charged."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.model.backoff import HAND_BACK
from tailrace.model.demand import Cell, Closed
from tailrace.model.outcome import Outcome
from tailrace.model.retry import Retry
from tailrace.model.workload import Ended, Kind
from tailrace.tailers.rules import hand_back
from tailrace.tailers.rules.credit import Credit
from tailrace.tailers.rules.hand_back import HandBacks, pause_after, spaced
from tailrace.tailers.rules.settlement import Family, History, settle

KIND = Kind("f", 2)
HELD = Ended(Outcome.HELD, "its lease was over")


def credit(*closed: Closed) -> Credit:
    given = Credit()
    given.limit([(Cell("f", 2), 10)], 10)
    given.close(closed)
    return given


@given(st.lists(st.integers(0, 2000).map(lambda hundredths: hundredths / 100), min_size=1, max_size=40))
def test_hand_outs_of_one_item_are_apart_by_a_pause_that_doubles_however_long_it_is_out(outs: list[float]) -> None:
    backs: HandBacks[str] = HandBacks()
    now, starts = 0.0, list[float]()
    for out_for in outs:
        starts.append(now)
        now += out_for
        times, pause = backs.came("a", "why", out_for, now)
        assert times == len(starts)
        assert 0.0 <= pause <= HAND_BACK.last
        assert backs.waiting(now) == (pause > 0)
        now += pause
    apart = [later - before for before, later in pairwise(starts)]
    for number, gap in enumerate(apart[1:]):
        assert gap >= min(HAND_BACK.last, HAND_BACK.first * 2**number) - 1e-6
    # And what was out for longer than its pause waits for nothing
    assert all(gap <= out_for + HAND_BACK.last + 1e-6 for gap, out_for in zip(apart, outs, strict=False))


@given(st.lists(st.sampled_from([Outcome.HELD, Outcome.RETRY, Outcome.LOST, Outcome.THROTTLED]), max_size=30))
def test_only_hand_backs_in_a_row_count_and_none_is_charged(ends: list[Outcome]) -> None:
    backs: HandBacks[str] = HandBacks()
    row = 0
    for number, outcome in enumerate(ends):
        row = row + 1 if outcome is Outcome.HELD else 0
        ended = spaced(backs, "a", KIND, Ended(outcome, "why"), credit(), 0.0, float(number))
        assert (ended.after or 0.0) == pause_after(row, 0.0)
        if outcome is Outcome.HELD:
            for family in Family:
                settlement = settle(ended, family, Retry(max_attempts=1, max_crashes=1), History(5, 3, 2))
                assert (settlement.failed, settlement.crashes, settlement.throttles) == (4, 3, 2)
                assert settlement.delay == pause_after(row, 0.0)


def test_the_first_is_free_and_the_reason_says_how_often_and_how_long() -> None:
    backs: HandBacks[str] = HandBacks()
    found = [spaced(backs, "a", KIND, HELD, credit(), 0.0, 0.0) for _ in range(9)]
    assert [ended.after for ended in found] == [None, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]
    assert found[0] == HELD
    assert found[3].reason == "its lease was over (4 times in a row: waits 0.4 s)"
    assert backs.why.endswith("its lease was over")


@pytest.mark.parametrize(
    ("ended", "given"),
    [
        (HELD, credit(Closed("f", "", "", "paused by ann", False, 0, 0.0))),
        (HELD, credit(Closed("f", "", "", "clogged", False, 1, 0.0))),
        (HELD, Credit()),
        (Ended(Outcome.HELD, "later", after=100.0), credit()),
    ],
)
def test_what_has_a_reason_of_its_own_waits_for_that(ended: Ended, given: Credit) -> None:
    backs: HandBacks[str] = HandBacks()
    for _ in range(5):
        assert spaced(backs, "a", KIND, ended, given, 0.0, 0.0) is ended


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hand_back, "REMEMBERED", 3)
    backs: HandBacks[int] = HandBacks()
    for item in (1, 2, 3, 1, 4):
        backs.came(item, "", 0.0, 0.0)
    assert len(backs) == 3
    assert backs.came(2, "", 0.0, 0.0)[0] == 1  # who came back first was forgotten
    backs.over([1, 2, 3, 4])
    assert len(backs) == 0


def test_a_clock_that_was_set_makes_no_pause_longer() -> None:
    assert pause_after(3, -3600.0) == pause_after(3, 0.0)
    assert pause_after(3, 3600.0) == 0.0
