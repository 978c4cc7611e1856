"""Commits of a member to its group: without waiting, one commit at a time, and of its own tenure only."""

import asyncio

import pytest

from tailrace.tailers.rules.group_offsets import Settled
from tailrace.tailers.sources import kafka_session
from tailrace.tailers.sources.kafka import KafkaSourceOptions
from tailrace.tailers.sources.kafka_partition import KafkaPartition
from tailrace.tailers.sources.kafka_session import KafkaSession

PLACE = ("orders", 0)


class Group:
    """A member, and the group's memory. A commit is answered by the next poll, unless `silent`; `refuses` says why the
    group does not take it, `broken` why a poll fails."""

    def __init__(self):
        self.known, self.commits, self.refuses, self.silent = {}, 0, "", False
        self.broken, self.closed = "", False
        self.places, self.fresh, self._under_way = {PLACE}, {PLACE}, None

    def poll(self, seconds):
        if self.broken:
            raise RuntimeError(self.broken)
        if self._under_way is not None and not self.silent:
            (positions, heard), self._under_way = self._under_way, None
            if not self.refuses:
                self.known.update((place, at.position) for place, at in positions.items())
            heard(RuntimeError(self.refuses) if self.refuses else None)
        return []

    def assigned(self):
        fresh, self.fresh = self.fresh, set()
        return set(self.places), fresh

    def commit(self, positions, heard):
        assert self._under_way is None, "one at a time"
        self.commits += 1
        self._under_way = (positions, heard)

    def seek(self, place, position):
        pass

    def pause(self, places):
        pass

    def close(self):
        self.closed = True

    resume = pause


class Tailer:
    def __init__(self):
        self.again = []

    def assigned(self, session, share):
        pass

    def failed(self, session, why, places):
        self.again += places


@pytest.fixture
async def session(monkeypatch):
    monkeypatch.setattr(kafka_session, "COMMIT_EVERY", 0.0)
    return KafkaSession(KafkaSourceOptions(topic="orders", group="g"), Tailer(), "tailrace")


def turn(session, group, settled=None, generation=1):
    if settled is not None:
        session.settled[PLACE] = Settled(settled, generation)
    session._turn(group)


def opened(session, group, generation=1):
    turn(session, group)
    session.seek(group, PLACE, 0, generation)


async def test_each_step_is_told_once(session):
    group = Group()
    opened(session, group)
    for settled in (5, 7, 7):
        turn(session, group, settled)
        assert group.known[PLACE] == settled
    assert group.commits == 2


async def test_nobody_waits_for_an_answer_and_nothing_is_told_meanwhile(session):
    group = Group()
    opened(session, group)
    group.silent = True
    for settled in (5, 7, 9):
        turn(session, group, settled)
    assert group.commits == 1 and group.known == {}
    group.silent = False
    turn(session, group)
    turn(session, group)
    assert group.known[PLACE] == 9


async def test_an_answer_that_never_comes_is_not_waited_for_for_ever(session, monkeypatch):
    monkeypatch.setattr(kafka_session, "HEARD_WITHIN", 0.0)
    group = Group()
    opened(session, group)
    group.silent = True
    turn(session, group, 5)
    group.silent, group._under_way = False, None
    turn(session, group, 7)
    assert group.known[PLACE] == 7


async def test_what_the_group_did_not_take_is_told_again(session):
    group = Group()
    opened(session, group)
    group.refuses = "a rebalance"
    turn(session, group, 5)
    assert group.known == {}
    group.refuses = ""
    turn(session, group)
    assert group.known[PLACE] == 5


async def test_a_member_that_lost_a_partition_for_a_while_tells_nothing_old_of_it(session):
    # Given a member with something to tell that was frozen, while another one had its partition and told more
    group = Group()
    opened(session, group)
    turn(session, group, 5)
    group.refuses = "unknown member"
    turn(session, group, 8)
    group.known[PLACE] = 20
    # When it joins again, is given the partition, and hears late of what it settled before
    group.fresh = {PLACE}
    turn(session, group)
    group.refuses = ""
    turn(session, group, 9)
    turn(session, group)
    # Then it tells nothing before it opened the partition again, and then what is new
    await asyncio.sleep(0)
    assert session._listener.again == [PLACE]
    assert group.known[PLACE] == 20
    session.seek(group, PLACE, 20, 2)
    turn(session, group)
    assert group.known[PLACE] == 20
    turn(session, group, 21, generation=2)
    assert group.known[PLACE] == 21


async def test_the_last_of_it_is_told_before_the_group_is_left(session):
    group = Group()
    opened(session, group)
    turn(session, group)
    session.settled[PLACE] = Settled(9, 1)
    session._leave(group)
    assert group.known[PLACE] == 9 and group.closed


async def test_a_member_that_cannot_even_tell_the_last_of_it_leaves_all_the_same(session):
    # Given a member with something to tell, whose every poll fails, as on a record that it cannot decompress
    group = Group()
    opened(session, group)
    turn(session, group)
    session.settled[PLACE] = Settled(9, 1)
    group.broken = "no such codec"
    # When its session ends, then it does not stay in the group, where the next member would wait for it
    session._leave(group)
    assert group.closed


class Feed:
    """A feed that notes its seeks and settlements, with their generations."""

    def __init__(self):
        self.sought, self.told = [], []

    async def seek(self, name, position, generation):
        self.sought.append(generation)
        return position

    def flow(self):
        pass

    def settled(self, place, position, generation):
        self.told.append(generation)


async def test_no_two_openings_of_a_partition_have_one_number():
    # Given a partition that is opened, taken away while it settles, and opened again by the next pump
    feed = Feed()
    for _ in range(2):
        part = KafkaPartition("orders-0", PLACE, feed, "deliver")
        await part.open({"orders-0": 5})
        part.failed("the group gave it away")
        await part.settled_below("orders-0", 7)
        await part.close()
        await part.settled_below("orders-0", 8)
    # Then what each settled bears the number of its own opening
    first, second = feed.sought
    assert first != second
    assert feed.told == [first, first, second, second]
