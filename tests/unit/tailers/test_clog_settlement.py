"""A tailer's side of an outage: failures say nothing of the item, and one item of the function at a time is out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.model.demand import Cell, Closed
from tailrace.model.outcome import Outcome
from tailrace.model.retry import Retry
from tailrace.model.workload import Ended, Kind
from tailrace.tailers.rules.clog import AT_HAND, may_read, settle_in_outage
from tailrace.tailers.rules.credit import Credit
from tailrace.tailers.rules.settlement import Action, Family, History, settle

POLICY = Retry(max_attempts=3, max_crashes=2)
A, A9, B = Cell("a", 0), Cell("a", 9), Cell("b", 0)
CLOG = Closed("a", reason="a is clogged", probes=1, since=5.0)


@given(
    st.sampled_from(Outcome),
    st.sampled_from(Family),
    st.integers(1, 5),
    st.integers(0, 3),
    st.booleans(),
    st.sampled_from([None, 0.0, 600.0]),
    st.booleans(),
)
def test_nothing_is_copied_and_nothing_is_spent(outcome, family, attempt, crashes, crashed, after, asked) -> None:
    ended = Ended(outcome, "why", after=after, crashed=crashed, asked=asked and outcome is Outcome.RETRY)
    history = History(attempt, crashes)
    usual = settle(ended, family, POLICY, history)
    found = settle_in_outage(usual, ended, family, history)
    # Never to the delay service; a dead letter only when the function said never again
    assert found.action is not Action.PARK
    assert found.action is not Action.DEAD or outcome is Outcome.FATAL or ended.asked
    # What ran and failed costs no attempt, and everything else is as always
    if outcome is Outcome.RETRY and not ended.asked:
        assert (found.failed, found.crashes) == (attempt - 1, crashes)
    if usual.action not in (Action.PARK, Action.DEAD) and (outcome is not Outcome.RETRY or ended.asked):
        assert found == usual
    # A queue's item goes back to its queue, a stream's stays in its stream
    if found.action not in (Action.DONE, Action.DEAD, Action.AGAIN):
        assert found.action is (Action.RETURN if family is Family.QUEUE else Action.HOLD)


def test_one_item_of_a_clogged_function_may_be_out() -> None:
    credit = Credit()
    credit.limit([(A, 50), (A9, 50), (B, 50)], 200)
    credit.take({A: 20, B: 10})
    # When the function is clogged
    credit.close([CLOG, Closed("b", collection="c", reason="paused")])
    assert (credit.room(A), credit.room(A9), credit.room(B)) == (1, 1, 40)
    assert not credit.fits({A: 1}) and credit.fits({B: 1})
    assert credit.rooms() == {A: 1, A9: 1, B: 40}
    assert [closed.function for closed in credit.closed] == ["b"]
    # Then one probe may be out, whatever comes back of what was out before
    credit.take({A: 1})
    assert (credit.room(A), credit.room(A9), credit.batch_room(A)) == (0, 0, 0)
    assert credit.is_closed(Kind("a", 9)) and credit.why_closed(Kind("a")) == "a is clogged"
    credit.give({A: 1})
    assert (credit.room(A), credit.batch_room(A)) == (1, 1) and not credit.is_closed(Kind("a"))
    # And what was pushed before lets none out when it returns, in whatever order
    credit.take({A: 1})
    credit.give({A: 3}, {A: 3})
    assert (credit.room(A), credit.is_closed(Kind("a"))) == (0, True)
    credit.give({A: 2}, {A: 1})
    assert credit.room(A) == 1
    # And when it is over, everything is as it was
    credit.close([])
    assert (credit.room(A), credit.why_closed(Kind("a"))) == (34, "")


@pytest.mark.parametrize(("held", "reads"), [(0, True), (AT_HAND - 1, True), (AT_HAND, False), (9999, False)])
def test_a_clogged_tailer_keeps_a_few_items_at_hand(held, reads) -> None:
    assert may_read(held) is reads


@given(st.lists(st.tuples(st.sampled_from(["take", "give", "clog", "open"]), st.sampled_from([A, A9, B]))))
def test_credit_never_leaks_through_outages(steps) -> None:
    credit = Credit()
    credit.limit([(A, 5), (A9, 5), (B, 5)], 12)
    out = {A: 0, A9: 0, B: 0}
    for step, cell in steps:
        if step == "take" and credit.room(cell):
            credit.take({cell: 1})
            out[cell] += 1
        elif step == "give" and out[cell]:
            credit.give({cell: 1})
            out[cell] -= 1
        elif step in ("clog", "open"):
            credit.close([CLOG] if step == "clog" else [])
        assert credit.out == sum(out.values())
    credit.close([])
    for cell, count in [each for each in out.items() if each[1]]:
        credit.give({cell: count})
    assert [credit.room(cell) for cell in out] == [5, 5, 5]


def test_items_whose_credit_was_taken_before_the_outage_count_as_probes_once_they_are_out() -> None:
    # Given copies whose credit was taken before their function was clogged
    credit = Credit()
    credit.limit([(A, 50), (B, 50)], 200)
    credit.take({A: 20, B: 5})
    then = credit.clogs
    credit.close([CLOG])
    assert credit.room(A) == 1
    # When they are pushed after that, then no further one may go while they are out
    credit.clogged_since(then, {A: 20, B: 5})
    assert (credit.room(A), credit.room(B)) == (0, 45)
    credit.give({A: 19})
    assert credit.room(A) == 0
    credit.give({A: 1})
    assert credit.room(A) == 1
