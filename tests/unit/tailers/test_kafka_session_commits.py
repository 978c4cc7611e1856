"""What a member tells its group: never less than the group knows already, whoever told it."""

from __future__ import annotations

import pytest

from tailrace.tailers.sources import kafka_session
from tailrace.tailers.sources.kafka import KafkaSourceOptions
from tailrace.tailers.sources.kafka_session import KafkaSession

PLACE = ("orders", 0)


class Group:
    """A member, and the group's memory; `refuses` says why the member's generation is over."""

    def __init__(self):
        self.known, self.asked, self.refuses = {}, 0, ""
        self.places, self.fresh = {PLACE}, {PLACE}

    def poll(self, seconds):
        if self.refuses == "until it polls":
            self.refuses, self.fresh = "", {PLACE}
        return []

    def assigned(self):
        fresh, self.fresh = self.fresh, set()
        return set(self.places), fresh

    def commit(self, positions):
        if self.refuses:
            raise RuntimeError("unknown member")
        self.known.update(positions)

    def committed(self, place):
        self.asked += 1
        return self.known.get(place)

    def pause(self, places):
        pass

    resume = pause


class Nobody:
    def assigned(self, session, share):
        pass


@pytest.fixture
async def session(monkeypatch):
    monkeypatch.setattr(kafka_session, "COMMIT_EVERY", 0.0)
    return KafkaSession(KafkaSourceOptions(topic="orders", group="g"), Nobody())


def turn(session, group, settled=None):
    if settled is not None:
        session.settled[PLACE] = settled
    session._turn(group)


async def test_the_group_is_asked_once_and_told_each_step(session):
    group = Group()
    turn(session, group)
    for settled in (5, 7, 9):
        turn(session, group, settled)
        assert group.known[PLACE] == settled
    assert group.asked == 1


async def test_a_member_that_froze_does_not_set_its_group_back(session):
    # Given a member that froze with something to tell, while another one had its partition and told more
    group = Group()
    turn(session, group)
    turn(session, group, 5)
    group.refuses = "while another one has it"
    turn(session, group, 8)
    group.known[PLACE] = 20
    # When it is given the partition again
    group.refuses = "until it polls"
    turn(session, group)
    turn(session, group)
    turn(session, group)
    # Then the group still knows what the other one told, and from there on hears of this one again
    assert group.known[PLACE] == 20
    turn(session, group, 21)
    assert group.known[PLACE] == 21


async def test_what_ends_late_of_a_partition_that_was_taken_away_sets_nothing_back(session):
    group = Group()
    turn(session, group)
    turn(session, group, 5)
    group.places = set()
    turn(session, group)
    # The last items of it were told while nobody else did, and then once more
    turn(session, group, 6)
    assert group.known[PLACE] == 6
    group.known[PLACE] = 20
    turn(session, group, 7)
    assert group.known[PLACE] == 20


async def test_a_member_whose_group_has_not_heard_of_its_freeze_asks_before_it_tells(session, monkeypatch):
    # Given a member that told something and froze, while another one told more
    clock = [100.0]
    monkeypatch.setattr(kafka_session.time, "monotonic", lambda: clock[0])
    group = Group()
    turn(session, group)
    clock[0] += 0.1
    turn(session, group, 5)
    group.known[PLACE] = 20
    # When it wakes and goes on, still a member as far as anybody knows
    clock[0] += kafka_session.FROZEN + 1
    turn(session, group, 8)
    # Then nothing is set back
    assert group.known[PLACE] == 20


async def test_after_a_commit_of_which_nobody_knows_the_end_the_group_is_asked(session):
    # Given a commit that failed here, and that the group took all the same, and more from another one
    group = Group()
    turn(session, group)
    turn(session, group, 5)
    group.refuses = "the answer was lost"
    turn(session, group, 8)
    group.known[PLACE], group.refuses = 20, ""
    # When the next one is told, Then not before the group was asked
    asked = group.asked
    turn(session, group, 9)
    assert group.asked == asked + 1
    assert group.known[PLACE] == 20
