"""Flows, items that wait in order, and when one expires."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tailrace.model.workload import Extra, Kind
from tailrace.scheduler.rules.flow import Item, Room, expired


def item(number: int, extra: Extra | None = None) -> Item:
    return (None, number, str(number), b"", Kind("f"), 1, 1, extra, None)


@given(st.lists(st.sampled_from(["put", "take", "back", "remove", "overflow"]), max_size=60), st.integers(1, 8))
def test_lanes_conserve_items_and_keep_their_order(events: list[str], bound: int) -> None:
    lane, made = Room(), 0
    expected: list[int] = []
    for event in events:
        if event == "put":
            lane.items.append(item(made))
            expected.append(made)
            made += 1
        elif event == "take":
            assert [each[1] for each in lane.take(2)] == expected[:2]
            expected = expected[2:]
        elif event == "back":
            lane.put_back(lane.take(3))
        elif event == "remove":
            gone = lane.remove(lambda each: each[1] % 3 == 0)
            assert [each[1] for each in gone] == [number for number in expected if number % 3 == 0]
            expected = [number for number in expected if number % 3]
        else:
            over = {each[1] for each in lane.overflow(bound)}
            assert over == set(expected[bound:])
            expected = expected[:bound]
        assert [each[1] for each in lane.items] == expected


def test_an_item_expires_at_its_time_and_not_without_one() -> None:
    assert expired(item(1, Extra(expires_at=5.0)), 5.0)
    assert not expired(item(1, Extra(expires_at=5.0)), 4.9)
    assert not expired(item(1, Extra()), 5.0)
    assert not expired(item(1), 5.0)
