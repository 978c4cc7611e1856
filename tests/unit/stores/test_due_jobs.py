"""Turns of trees on SQLite: each that something is to be done with has one before any has another."""

from __future__ import annotations

from tailrace.stores.jobs.sqlite.due_jobs import DueJobs


def test_trees_take_turns_and_parents_come_before_their_children() -> None:
    # Given two trees of several jobs, and one that comes later
    due = DueJobs([(1, 12), (1, 11), (2, 21)])
    assert [due.turn() for _ in range(3)] == [11, 21, 11]
    due.add(3, 31)
    # When a job has nothing more to be done, then the next one of its tree has its turn
    due.discard(11)
    assert [due.turn() for _ in range(4)] == [21, 12, 31, 21]
    assert 12 in due
    assert 11 not in due
    assert len(due) == 3


def test_a_tree_of_which_nothing_is_to_be_done_has_no_turn() -> None:
    due = DueJobs([(1, 11), (2, 21)])
    for _ in range(2):
        due.discard(11)
    assert [due.turn(), due.turn()] == [21, 21]
    due.discard(21)
    assert not due
