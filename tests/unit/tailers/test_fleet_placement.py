"""The member of a fleet to which a tailer belongs."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from tailrace.model.member import FleetMember, tailers_to_text
from tailrace.model.overview import TailerOverview
from tailrace.tailers.membership import OtherProcesses
from tailrace.tailers.rules.fleet_placement import SETTLED, StandingMember, better_places

NAMES = [f"orders-{n}" for n in range(400)]


def members(*ids: str, able: list[str] = NAMES) -> list[StandingMember]:
    return [StandingMember(id, f"at {id}", frozenset(able), 0.0) for id in ids]


def home(tailer: str, all_: list[StandingMember]) -> str:
    """The place of a tailer, as each member sees it: they agree."""
    found = set()
    for own in all_:
        better = better_places(own, [each for each in all_ if each is not own], 100.0).get(tailer)
        found.add(better.place if better else own.place)
    [place] = found
    return place


@given(st.lists(st.text(min_size=1, max_size=5), unique=True, min_size=1, max_size=5))
def test_all_members_agree_whatever_they_are_called(ids: list[str]) -> None:
    for tailer in ("a", "\ud800", ""):
        assert home(tailer, members(*ids, able=[tailer])) in {f"at {id}" for id in ids}


def test_each_has_about_its_share_and_only_what_must_moves() -> None:
    three, four = members("a", "b", "c"), members("a", "b", "c", "d")
    before = {name: home(name, three) for name in NAMES}
    after = {name: home(name, four) for name in NAMES}
    assert all(90 <= count <= 180 for count in Counter(before.values()).values())
    moved = {name for name in NAMES if before[name] != after[name]}
    assert {after[name] for name in moved} == {"at d"}
    assert 60 <= len(moved) <= 140


def test_what_a_member_cannot_run_does_not_belong_to_it() -> None:
    own, [other] = members("a")[0], members("b", able=NAMES[:10])
    assert set(better_places(own, [other], 100.0)) < set(NAMES[:10])


def told(id: str, *states: str) -> FleetMember:
    tailers = [TailerOverview(name, "log", state) for name, state in zip(NAMES, states, strict=False)]
    return FleetMember(id, f"at {id}", tailers_to_text(tailers))


def test_a_member_is_settled_when_it_was_known_for_a_while_and_begins_anew_when_it_comes_back() -> None:
    others = OtherProcesses("a", "at a")
    all_ = [told("a"), told("b", *["starting"] * 40)]
    found = others.look(NAMES, all_, 0.0)
    assert found and {each.settled for each in found.values()} == {False}
    assert {each.settled for each in others.look(NAMES, all_, SETTLED).values()} == {True}
    assert others.look(NAMES, [told("a")], SETTLED + 1) == {}
    assert {each.settled for each in others.look(NAMES, all_, SETTLED + 2).values()} == {False}


def test_a_tailer_that_failed_or_is_paused_or_drains_there_stays_here() -> None:
    others = OtherProcesses("a", "at a")
    for state in ("failed", "paused", "draining", "disconnected"):
        assert others.look(NAMES, [told("b", *[state] * 40)], 100.0) == {}
