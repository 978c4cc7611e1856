"""The table of the spool's rule: where a submission goes while the store fails."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.gateway.rules.spool import FULL_WAIT, SpoolRule, SpoolState, SubmissionWay
from tailrace.model.backoff import SPOOL
from tailrace.model.errors import Overloaded


def rule(items: int = 0, *, away: bool = False) -> SpoolRule:
    made = SpoolRule(100, 1000)
    made.holds(items, items)
    if away:
        made.failed()
    return made


@pytest.mark.parametrize(
    ("items", "away", "state", "way", "way_of_ordered"),
    [
        (0, False, SpoolState.CLEAR, SubmissionWay.STORE, SubmissionWay.STORE),
        (
            0,
            True,
            SpoolState.CLEAR,
            SubmissionWay.STORE,
            SubmissionWay.STORE,
        ),  # nothing to look at the store with but submissions
        (1, True, SpoolState.FILLING, SubmissionWay.SPOOL, SubmissionWay.SPOOL),
        (1, False, SpoolState.DRAINING, SubmissionWay.STORE, SubmissionWay.SPOOL),
    ],
)
def test_the_table(
    items: int, away: bool, state: SpoolState, way: SubmissionWay, way_of_ordered: SubmissionWay
) -> None:
    seen = rule(items, away=away)
    assert (seen.state, seen.way(False), seen.way(True)) == (state, way, way_of_ordered)


def test_a_write_that_may_be_there_is_spooled_only_if_the_queue_would_know_it_again() -> None:
    seen = rule()
    assert seen.may_spool(asked=True, known_again=True)
    assert seen.may_spool(asked=False, known_again=False)
    assert not seen.may_spool(asked=True, known_again=False)
    assert not SpoolRule(0, 1000).may_spool(asked=False, known_again=True)


def test_a_full_spool_refuses_with_a_retry_hint() -> None:
    seen = rule()
    seen.check_room({"": (99, 0)}, {"": (1, 1000)}, (99, 0), shared=False)
    for held, more in (((100, 0), (1, 0)), ((0, 999), (1, 2)), ((0, 0), (101, 0))):
        with pytest.raises(Overloaded, match="the store is away") as caught:
            seen.check_room({"": held}, {"": more}, held, shared=False)
        assert caught.value.retry_after == FULL_WAIT


def test_the_store_is_asked_less_and_less_often_until_it_answers() -> None:
    seen = rule(5)
    pauses = [seen.failed() for _ in range(40)]
    assert pauses[0] == SPOOL.first
    assert pauses == sorted(pauses)
    assert pauses[-1] == SPOOL.last
    seen.answered()
    assert seen.state is SpoolState.DRAINING
    assert seen.failed() == SPOOL.first


@given(st.lists(st.floats(0, 1, exclude_max=True), min_size=1, max_size=20))
def test_gateways_that_lost_their_store_together_do_not_ask_it_together(drawn: list[float]) -> None:
    alone, several = rule(5), rule(5)
    for chance in drawn:
        pause = alone.failed()
        assert several.failed(lambda chance=chance: chance) == pause * (0.5 + chance)


@given(
    st.lists(st.one_of(st.sampled_from(["failed", "answered", "enters", "entered"]), st.integers(0, 5)), max_size=50)
)
def test_nothing_ordered_overtakes_what_is_spooled(events: list[str | int]) -> None:
    seen = rule()
    for event in events:
        if isinstance(event, int):
            seen.holds(event, event)
        elif event.startswith("enter"):
            seen.entering = max(0, seen.entering + (1 if event == "enters" else -1))
        else:
            getattr(seen, event)()
        assert seen.way(True) is (SubmissionWay.SPOOL if seen.items or seen.entering else SubmissionWay.STORE)
        assert (seen.state is SpoolState.CLEAR) == (not seen.items)
