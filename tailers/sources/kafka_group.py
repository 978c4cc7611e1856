"""A Kafka consumer group as a shared source: the group decides which process should read which partition (the ownership
rows say which one may).

One thread has the group's member and does nothing but poll it: so the group sees it alive however slow the functions
are, and a partition whose reader is behind is paused, not left unpolled. Lists of records, questions, and the set of
full partitions cross between the threads.

A partition that is taken away needs no waiting here: it is read no further, its pump ends the items that are out and
releases the row, and the process to which the group gave it waits for that.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NoReturn, TypeVar

from ...foundation.clock import SYSTEM_CLOCK, Clock
from ...foundation.duties import Duties
from ...foundation.logger import Logger
from ...model.errors import NotConnected, Unavailable
from ...model.units import start_of
from ...stores.checkpoints.checkpoints import Checkpoints
from ...stores.kafka.client import Fetch, Place, Reader, ReadUpTo, Topic, TopicAdmin
from ...stores.kafka.client_thread import BatchedCalls, KafkaThread
from ...stores.kafka.clients import client_of
from ...stores.kafka.errors import unavailable
from ...stores.log.log import Bounds, Records
from ..rules.group_members import client_name, stranger
from ..rules.group_offsets import Settled
from ..rules.topic_lives import place_of
from .kafka_lives import KafkaLives
from .kafka_member import Member, Polled
from .kafka_partition import BUFFER_ITEMS, CAPABILITIES, KafkaPartition
from .kafka_reread import AGAIN_BYTES
from .kafka_session import KafkaSession

#: Seconds between looks from outside: whether the topics exist, and the member makes progress.
LOOK_EVERY = 5.0
#: Seconds that opening a partition waits for the group to assign it.
ASSIGNED_WITHIN = 5.0
#: Seconds for which a partition may end below the checkpoint: a new leader may not know all acknowledged records yet.
BEHIND_FOR = 15.0
#: A full partition is fetched again once its buffer has no more than so many items.
SLACK = BUFFER_ITEMS // 2

A = TypeVar("A")


class GroupInUse(NotConnected):
    """The consumer group is in use by another application."""


log = Logger("tailrace.kafka")


class KafkaGroup:
    """Implements `sdk.source.SharedSource` and the `Feed` of its partitions. All of it runs in the event loop; the
    session has the thread.

    problem  why the brokers cannot be reached, as seen from outside of the group; empty while they can
    """

    capabilities = CAPABILITIES

    def __init__(self, options: Any, tailer: str, checkpoints: Checkpoints, clock: Clock = SYSTEM_CLOCK) -> None:
        client = client_of(options)
        self._tailer = tailer
        self._clock = clock
        self.release_within: float = options.release_within
        self.problem = ""
        self._options = options
        self._where = options.where
        self._reading: KafkaThread[Reader] = KafkaThread("again", lambda: client.reader(options), self._explain)
        self._looking: KafkaThread[TopicAdmin] = KafkaThread("look", lambda: client.topic_admin(options), self._explain)
        self._again: BatchedCalls[Reader, Fetch, Records] = BatchedCalls(
            self._reading, lambda reader, asked: reader.read(asked)
        )
        self._parts: dict[Place, KafkaPartition] = {}
        self._share: frozenset[Place] | None = None
        self._failure = ""
        self._news = asyncio.Event()
        self._behind: dict[Place, float] = {}
        self._lives = KafkaLives(checkpoints, tailer, options.where, options.on_recreated)
        self._checks: BatchedCalls[TopicAdmin, ReadUpTo, int | None] = BatchedCalls(
            self._looking, lambda admin, asked: admin.cut_off(asked)
        )
        self._session: KafkaSession | None = None
        self._duties = Duties(f"group {options.group}", self._watch_failed)

    # The methods of a shared source.

    async def open(self) -> None:
        if self._session is not None:
            return
        there = await self._described()
        cluster = await self._looking.call(lambda admin: admin.cluster())
        await self._lives.meet_all(there, self._options.read, cluster, self._starts)
        self._all_exist(there)
        await self._group_is_ours()
        self._failure, self._share, self.problem = "", None, ""
        words = {topic: self._lives.words(topic) for topic in self._options.read}
        self._session = KafkaSession(self._options, self, client_name(self._tailer), words)
        self.flow()
        self._session.start()
        self._duties.begin(self._keep_watch(), "the watch over it")

    async def changed(self, known: frozenset[str]) -> frozenset[str]:
        loaded: frozenset[Place] | None = None
        while True:
            if self._failure:
                raise NotConnected(self._failure)
            if self._session is None:
                raise NotConnected("the group was left")
            if (share := self._share) is not None:
                if share != loaded:  # another process may have had partitions of it, and noted other lives of them
                    await self._lives.load()
                    loaded = share
                names = frozenset(map(self._lives.name, share))
                if names != known:
                    return names
                if share != self._share:
                    continue
            self._news.clear()
            await self._news.wait()

    def partition(self, name: str) -> KafkaPartition:
        place = place_of(name)
        part = self._parts[place] = KafkaPartition(name, place, self, self._options.tombstones)
        return part

    async def close(self) -> None:
        session, self._session = self._session, None
        await self._duties.end()
        if session is not None:
            await session.end()
        self._share = None
        for part in self._parts.values():
            part.failed(self._failure or "the group was left")
        self._news.set()
        await self._reading.close()
        await self._looking.close()

    # The feed of the partitions.

    async def begin(self, name: str) -> int:
        place = place_of(name)
        await self._until_assigned(place)
        self.present(name)
        topic, partition = self._lives.topic(place[0]), self._lives.partition(place)
        if partition.cuts:
            return partition.start
        if topic.begin != "from_start":
            committed = await self._ask(lambda member: member.committed(place))
            if committed is not None and not self._lives.is_of_a_former_life(place[0], committed.words):
                return committed.position
        bounds = await self.bounds(place)
        position, time = bounds.start, self._options.start_time
        if topic.begin == "first" and time is not None:
            position = (await self._looking.call(lambda admin: admin.at_time([place], time)))[place]
        elif topic.begin == "first":
            position = topic.starts.get(place[1], position)  # where retention has passed it, the tailer hears of it
        if position > 0:
            log.info(
                "begins behind records that are not read",
                tailer=self._tailer,
                partition=name,
                first=bounds.start,
                position=position,
                passed=max(0, position - bounds.start),
            )
        return position

    async def _starts(self, topic: str, partitions: int) -> dict[int, int]:
        """The positions at which partitions begin that are there when the tailer is started first."""
        start = self._options.start
        if start == "earliest" or self._options.start_time is not None:
            return {}
        places = [(topic, number) for number in range(partitions)]
        if start == "latest":
            found = await self._looking.call(partial(_ends_of, places))
        else:
            time = int(start_of(start, self._clock.wall()) * 1000)
            found = await self._looking.call(lambda admin: admin.at_time(places, time))
        return {place[1]: position for place, position in found.items()}

    async def seek(self, name: str, position: int, generation: int) -> int:
        place = place_of(name)
        await self._until_assigned(place)
        self.present(name)
        bounds = await self.bounds(place)
        if position > bounds.end:
            await self._is_behind(place, position, bounds.end)
        self._behind.pop(place, None)
        start = max(position, bounds.start)
        epoch = self._lives.partition(place).epoch_before(position) if start == position else -1
        if epoch >= 0 and (cut := await self._checks.ask(ReadUpTo(place, position, epoch))) is not None:
            await self._cut(place, position, cut)
        session = self._session
        if session is None:
            raise NotConnected(self._failure or "the group was left")
        await self._ask(lambda member: session.seek(member, place, start, generation))
        return start

    async def _is_behind(self, place: Place, position: int, end: int) -> None:
        """Raises NotConnected, or is cut after a while: the partition ends below positions that were read of it."""
        now = asyncio.get_running_loop().time()
        since = self._behind.setdefault(place, now)
        if now - since < BEHIND_FOR:
            name = self._lives.name(place)
            raise NotConnected(f"{self._where}: partition {name} ends at {end}, and was read up to {position}")
        await self._cut(place, position, end)

    async def _cut(self, place: Place, position: int, end: int) -> NoReturn:
        """Raises NotConnected, for a partition that has another life now, since it lost records that were read; or
        PositionsGone where the tailer is to stop then."""
        await self._lives.cut(place, position, end)
        self._behind.pop(place, None)
        self._news.set()
        raise NotConnected(f"the partition goes on as {self._lives.name(place)}")

    async def noted(self, name: str, epochs: Sequence[tuple[int, int]]) -> None:
        self.present(name)
        await self._lives.was_read(place_of(name), epochs)

    def present(self, name: str) -> None:
        if name != self._lives.name(place_of(name)):
            raise NotConnected(f"partition {name} is over: there is another of its name")

    def flow(self) -> None:
        session = self._session
        if session is None:
            return
        before = session.full
        session.full = frozenset(
            place
            for place, part in self._parts.items()
            if part.full or not part.is_open or (place in before and part.items > SLACK)
        )

    def settled(self, place: Place, position: int, generation: int) -> None:
        if self._session is not None:
            self._session.settled[place] = Settled(position, generation)

    async def again(self, place: Place, position: int, limit: int) -> Records:
        return await self._again.ask(Fetch(place, position, limit, AGAIN_BYTES))

    async def bounds(self, place: Place) -> Bounds:
        if self._session is None:
            raise NotConnected(self._failure or "the group was left")
        return (await self._looking.call(lambda admin: admin.bounds([place])))[place]

    async def _until_assigned(self, place: Place) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(ASSIGNED_WITHIN):
                while not self._failure and place not in (self._share or ()):
                    self._news.clear()
                    await self._news.wait()
        if self._failure or place not in (self._share or ()):
            raise NotConnected(
                self._failure or f"the group has not assigned partition {self._lives.name(place)} to this member"
            )

    async def _ask(self, question: Callable[[Member], A]) -> A:
        session = self._session
        if session is None or self._failure:
            raise NotConnected(self._failure or "the group was left")
        return await session.ask(question)

    # Calls from the session's thread, in the event loop.

    def arrived(self, session: KafkaSession, polled: list[tuple[Polled, int]]) -> None:
        if session is self._session:
            for each, generation in polled:
                if (part := self._parts.get(each.place)) is not None:
                    part.arrived(each, generation)
            self.flow()

    def assigned(self, session: KafkaSession, share: frozenset[Place]) -> None:
        if session is self._session:
            self._share = share
            self._news.set()

    def failed(self, session: KafkaSession, why: str, places: Iterable[Place] | None) -> None:
        """Hears that the member is over (`places` None), or that some partitions must be opened again."""
        if session is not self._session:
            return
        if places is None and not self._failure:
            self._failure = why
            log.debug("the consumer ended", group=self._options.group, reason=why)  # its tailer says it, once
        for place in self._parts if places is None else places:
            if (part := self._parts.get(place)) is not None:
                part.failed(why)
        self._news.set()

    def _watch_failed(self, why: str) -> None:
        """Ends the session when the watch failed, so that the group is joined anew: without the watch nobody would see
        that brokers are away, or that the member hangs."""
        if self._session is not None:
            self.failed(self._session, f"{self._where}: {why}", None)

    # Looks from outside.

    async def _described(self) -> dict[str, Topic]:
        topics = self._options.read
        return await self._looking.call(lambda admin: admin.described(topics))

    def _all_exist(self, there: Mapping[str, Topic]) -> None:
        if missing := sorted(set(self._options.read) - set(there)):
            raise NotConnected(
                f"{self._where}: the topic {missing[0]!r} does not exist there (yet): create it, or correct its name"
            )

    async def _group_is_ours(self) -> None:
        group = self._options.group
        other = stranger(await self._looking.call(lambda admin: admin.members(group)), self._tailer)
        if other:
            raise GroupInUse(
                f"{self._where}: the group's name {group!r} is in use by another application, {other}, which would be "
                "given a part of the records: take another group"
            )

    async def _keep_watch(self) -> None:
        """Watches for troubles that a member does not report: brokers that are away, a topic that is gone, another
        application in the group, and a member that hangs."""
        loop = asyncio.get_running_loop()
        since: dict[Place, tuple[int, float]] = {}
        while True:
            await asyncio.sleep(LOOK_EVERY)
            session = self._session
            assert session is not None
            try:
                there = await self._described()
                self._all_exist(there)
                if other := self._lives.another_of(there):
                    self.failed(session, f"{self._where}: the topic {other!r} was made again", None)
                await self._group_is_ours()
                places = [place for place, part in self._parts.items() if part.is_open and not part.items]
                ends = await self._looking.call(partial(_ends_of, places))
            except Unavailable as error:
                if "does not exist" in str(error) or isinstance(error, GroupInUse):
                    self.problem = str(error)
                    self.failed(session, self.problem, None)
                else:
                    self._see(str(error))
                continue
            self._see("")
            now = loop.time()
            waits = {place: self._parts[place].fetched for place in places if ends[place] > self._parts[place].fetched}
            since = {
                place: known if (known := since.get(place, (at, now)))[0] == at else (at, now)
                for place, at in waits.items()
            }
            hung = [place for place, (_, began) in since.items() if now - began > self._options.hung_after]
            if hung:
                name = self._lives.name(hung[0])
                why = f"{self._where}: the consumer gives no records of {name} although there are more"
                self.failed(session, why, None)

    def _see(self, problem: str) -> None:
        """Logs the beginning and the end of a problem through which the member goes on without a report."""
        if problem and not self.problem:
            log.warning("not connected", tailer=self._tailer, reason=problem)
        elif self.problem and not problem:
            log.info("connected again", tailer=self._tailer)
        self.problem = problem

    def _explain(self, error: BaseException) -> Exception:
        return unavailable(self._where, error)


def _ends_of(places: list[Place], admin: TopicAdmin) -> dict[Place, int]:
    return admin.ends(places)
