"""The room of a tenant: some is free for whoever comes, and who is alone gets half."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.gateway.rules.callback_places import places_left
from tailrace.model.errors import Overloaded
from tailrace.model.shared_room import SharedRoom, room_left

many = st.integers(1, 10_000)


@given(many, st.lists(st.integers(0, 30), min_size=1, max_size=60))
def test_tenants_that_take_what_they_may_leave_some_to_the_next(most: int, turns: list[int]) -> None:
    # Given tenants that come in any order, and take all that they may each time
    held = dict.fromkeys(turns, 0)
    for tenant in turns:
        held[tenant] += room_left(held[tenant], sum(held.values()), most)
    # Then nothing is taken twice, nobody has more than half and one, and a new one finds a place while any is free
    used = sum(held.values())
    assert used <= most
    assert max(held.values()) <= most // 2 + 1
    assert room_left(0, used, most) > 0 or used == most


@given(many)
def test_one_tenant_alone_has_half_at_most(most: int) -> None:
    first = room_left(0, 0, most)
    assert first == (most + 1) // 2
    assert room_left(first, first, most) <= 1 if most % 2 == 0 else room_left(first, first, most) == 0


def test_places_are_all_for_those_without_tenants_where_there_are_none() -> None:
    assert places_left({"": 15}, 16, tenants=False) == (1, frozenset())
    assert places_left({}, 16, tenants=False) == (16, frozenset())


@given(st.dictionaries(st.sampled_from(["", "a", "b", "c"]), st.integers(1, 4)))
def test_no_claim_takes_more_than_the_room_of_any_tenant_that_it_may_be_of(held: dict[str, int]) -> None:
    total, closed = places_left(held, 16, tenants=True)
    used = sum(held.values())
    assert closed <= held.keys()
    for tenant in {*held, "new"} - closed:
        assert total <= room_left(held.get(tenant, 0), used, 16)
    assert used + total <= 16


def test_a_batch_is_taken_whole_or_refused_for_the_tenant_that_has_no_room() -> None:
    room = SharedRoom("places (`most`)", "try again later", 5.0)
    held = {"a": 40, "b": 10}
    room.check(held, {"a": 5, "b": 18}, 50, 100)
    for more, whose in (({"b": 20, "a": 6}, "the tenant 'a' has"), ({"": 26}, "those without a tenant have")):
        with pytest.raises(Overloaded, match=whose) as caught:
            room.check(held, more, 50, 100)
        assert caught.value.of_tenant and caught.value.retry_after == 5.0
        assert "of the 100 places (`most`), and what is left is for others too: try again later" in str(caught.value)
