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
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, TypeVar

from ...foundation.duties import Duties
from ...foundation.logger import Logger
from ...model.errors import NotConnected, PositionsGone, Unavailable
from ...stores.kafka.client import Fetch, Place, Reader, TopicAdmin
from ...stores.kafka.client_thread import BatchedCalls, KafkaThread
from ...stores.kafka.clients import client_of
from ...stores.kafka.errors import unavailable
from ...stores.log.log import Bounds, Records
from ..rules.group_members import client_name, stranger
from ..rules.group_offsets import Settled
from .kafka_member import Member, Polled
from .kafka_partition import BUFFER_ITEMS, CAPABILITIES, KafkaPartition
from .kafka_reread import AGAIN_BYTES, name_of, place_of
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

    def __init__(self, options: Any, tailer: str) -> None:
        client = client_of(options)
        self._tailer = tailer
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
        self._session: KafkaSession | None = None
        self._duties = Duties(f"group {options.group}", self._watch_failed)

    # The methods of a shared source.

    async def open(self) -> None:
        if self._session is not None:
            return
        await self._topics_exist()
        await self._group_is_ours()
        self._failure, self._share, self.problem = "", None, ""
        self._session = KafkaSession(self._options, self, client_name(self._tailer))
        self.flow()
        self._session.start()
        self._duties.begin(self._keep_watch(), "the watch over it")

    async def changed(self, known: frozenset[str]) -> frozenset[str]:
        while True:
            if self._failure:
                raise NotConnected(self._failure)
            if self._session is None:
                raise NotConnected("the group was left")
            if self._share is not None:
                names = frozenset(map(name_of, self._share))
                if names != known:
                    return names
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

    async def begin(self, place: Place) -> int:
        await self._until_assigned(place)
        committed = await self._ask(lambda member: member.committed(place))
        if committed is not None:
            return committed
        start = self._options.start_time
        if start is not None:
            return (await self._looking.call(lambda admin: admin.at_time([place], start)))[place]
        bounds = await self.bounds(place)
        return bounds.end if self._options.start == "latest" else bounds.start

    async def seek(self, place: Place, position: int, generation: int) -> int:
        await self._until_assigned(place)
        bounds = await self.bounds(place)
        if position > bounds.end:
            self._is_behind(place, position, bounds.end)
        self._behind.pop(place, None)
        start = max(position, bounds.start)
        session = self._session
        if session is None:
            raise NotConnected(self._failure or "the group was left")
        await self._ask(lambda member: session.seek(member, place, start, generation))
        return start

    def _is_behind(self, place: Place, position: int, end: int) -> None:
        """Raises NotConnected, or PositionsGone after a while: the partition ends below positions that were read of
        it."""
        now = asyncio.get_running_loop().time()
        since = self._behind.setdefault(place, now)
        words = f"{self._where}: partition {name_of(place)} ends at {end}, and was read up to {position}"
        if now - since < BEHIND_FOR:
            raise NotConnected(words)
        raise PositionsGone(
            f"{words}: the topic was deleted and made again, or lost its end. Nothing is passed without your "
            "permission: give the tailer another name to begin anew"
        )

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
            raise NotConnected(self._failure or f"the group has not assigned partition {name_of(place)} to this member")

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

    async def _topics_exist(self) -> None:
        topics = self._options.read
        there = await self._looking.call(lambda admin: admin.partitions(topics))
        if missing := sorted(set(topics) - set(there)):
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
                await self._topics_exist()
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
                self.failed(
                    session,
                    f"{self._where}: the consumer gives no records of {name_of(hung[0])} although there are more",
                    None,
                )

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
