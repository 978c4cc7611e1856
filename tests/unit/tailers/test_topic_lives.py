"""The lives of topics and partitions: names, and which leader epoch a position has."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.model.life import Life
from tailrace.tailers.rules.topic_lives import (
    MOST_EPOCHS,
    PartitionLife,
    committed_by,
    is_of_a_former_life,
    partition_name,
    place_of,
)


@pytest.mark.parametrize(
    ("life", "cuts", "name"),
    [
        ("", 0, "my-orders-3"),
        ("wx6MxyTjSUCYUesPZ62NTw", 0, "my-orders-3@wx6MxyTjSUCYUesPZ62NTw"),
        ("", 2, "my-orders-3@cut2"),
        ("-x6M", 1, "my-orders-3@-x6M.cut1"),
    ],
)
def test_a_partition_of_another_life_has_another_name(life: str, cuts: int, name: str) -> None:
    assert partition_name("my-orders", 3, life, cuts) == name
    assert place_of(name) == ("my-orders", 3)


def test_what_has_another_sign_is_another_one_and_what_has_none_is_not() -> None:
    known = Life("a", "here", starts={0: 7})
    assert known.is_another("b") and not known.is_another("a")
    assert not known.is_another("") and not Life("").is_another("b")
    assert known.next(Life("b", "here", "b"), "group") == Life("b", "here", "b", "group")
    # And lives without names of their own are counted
    second = known.next(Life("c"), "from_start")
    assert (second.name, second.next(Life("d"), "from_start").name) == ("2", "3")


def test_an_offset_that_we_committed_for_a_former_topic_of_this_cluster_is_not_believed() -> None:
    words = committed_by("here", "a")
    assert is_of_a_former_life(words, "here", "b")
    assert not is_of_a_former_life(words, "here", "a")
    assert not is_of_a_former_life(words, "there", "b")  # a mirror has translated it
    assert not is_of_a_former_life("", "here", "b") and not is_of_a_former_life("theirs", "here", "b")


def test_the_epoch_before_a_position_is_that_of_the_record_before_it() -> None:
    life = PartitionLife().with_epochs([(0, 0), (3, 100)])
    assert [life.epoch_before(position) for position in (0, 1, 100, 101, 500)] == [-1, 0, 0, 3, 3]
    assert life.first_of(3) == 100
    # And one that is read again is no other one
    assert life.with_epochs([(0, 40)]) == life == life.with_epochs([(3, 120)])


def test_what_is_cut_off_is_forgotten() -> None:
    life = PartitionLife(epochs=((0, 0), (3, 100), (4, 130))).cut(120)
    assert life == PartitionLife(1, 120, ((0, 0), (3, 100)))


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 5)), max_size=2 * MOST_EPOCHS))
def test_the_last_epoch_is_known_however_many_there_were(steps: list[tuple[int, int]]) -> None:
    life, epoch, position = PartitionLife(), 0, 0
    for more, count in steps:
        epoch += more
        life = life.with_epochs([(epoch, position)])
        position += count
        assert life.epoch_before(position) == epoch
    assert len(life.epochs) <= MOST_EPOCHS
