"""The notes of the lives of topics and partitions (rules/topic_lives.py), beside the checkpoints of their tailer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence

from ...foundation.logger import Logger
from ...model.errors import NotConnected, PositionsGone, Unavailable
from ...stores.checkpoints.checkpoints import Checkpoints, Mark
from ...stores.kafka.client import Place, Topic
from ..rules.topic_lives import (
    Choice,
    PartitionLife,
    TopicLife,
    committed_by,
    is_another,
    is_of_a_former_life,
    next_life,
    partition_name,
)

#: The notes are kept under this name and the tailer's, always with one epoch: each is written once, or by the owner of
#: its partition.
NOTES = "@lives."
EPOCH = 1
#: The beginning of the names under which topics are noted, which no partition's name has.
TOPIC = "topic:"
HOW = (
    'say in its file under "source" how it is to go on: "on_recreated: from_start" reads it from its start, '
    '"on_recreated: group" goes on at the offsets that the group has there; then start it again'
)

log = Logger("tailrace.kafka")


class KafkaLives:
    """The lives of one tailer's topics.

    Invariant: what is known here of a topic or partition is as old as the last `load`, or newer. Each note has a higher
    position than the one before, so that a late one of another process changes nothing.
    """

    def __init__(self, checkpoints: Checkpoints, tailer: str, where: str, choice: Choice) -> None:
        self._checkpoints = checkpoints
        self._tailer = tailer
        self._name = NOTES + tailer
        self._where = where
        self._choice = choice
        self._cluster = ""
        self._opened = False
        self._topics: dict[str, TopicLife] = {}
        self._parts: dict[str, PartitionLife] = {}
        self._versions: dict[str, int] = {}

    async def load(self) -> None:
        """Reads the notes, those of other processes too. Raises NotConnected when the store is away."""
        try:
            marks = await self._checkpoints.load(self._name)
        except Unavailable as error:
            raise NotConnected(str(error)) from error
        self._versions = {name: mark.position for name, mark in marks.items()}
        for name, mark in marks.items():
            if name.startswith(TOPIC):
                self._topics[name[len(TOPIC) :]] = TopicLife.decode(mark.ahead)
            else:
                self._parts[name] = PartitionLife.decode(mark.ahead)

    async def meet(
        self,
        there: Mapping[str, Topic],
        wanted: Sequence[str],
        cluster: str,
        starts: Callable[[str, int], Awaitable[dict[int, int]]],
    ) -> None:
        """Notes topics that are met for the first time (`starts` tells where the partitions of one begin, by its name
        and their number), and follows the tailer's choice for those that are others now. Raises PositionsGone where
        that is to stop."""
        self._cluster = cluster
        await self.load()
        for name in wanted:
            known, topic = self._topics.get(name), there.get(name)
            if topic is None:
                if known is None:
                    await self._note_topic(name, TopicLife(""))  # waited for: it is read from its start
                continue
            id = topic.id or cluster
            if known is None:
                first = {} if await self._was_read(name, topic.partitions) else await starts(name, topic.partitions)
                await self._note_topic(name, TopicLife(id, cluster, starts=first))
            elif not known.id and id:
                await self._note_topic(name, known._replace(id=id, cluster=cluster))
            elif is_another(known, id):
                await self._another(name, known, id, topic.partitions)

    async def _was_read(self, topic: str, partitions: int) -> bool:
        """Whether this tailer has a checkpoint of the topic, from a version that noted no lives."""
        for number in range(partitions):
            if await self._checkpoints.load(f"{self._tailer}/{partition_name(topic, number)}"):
                return True
        return False

    async def _another(self, name: str, known: TopicLife, id: str, partitions: int) -> None:
        why = "is in another cluster" if known.cluster != self._cluster else "was deleted and made again"
        words = (
            f"{self._where}: the topic {name!r} is another one than the one that was read: it {why} "
            f"(its id is {id} in the cluster {self._cluster}, and was {known.id} in {known.cluster})"
        )
        if self._choice == "stop":
            raise PositionsGone(f"{words}. Nothing is passed over without your permission: {HOW}")
        await self._note_topic(name, next_life(id, self._cluster, self._choice))
        log.warning("goes on with another topic of the same name", tailer=self._tailer, reason=words)

    def is_another(self, there: Mapping[str, Topic]) -> str:
        """The name of a topic that is another one than the one that is noted; empty: there is none."""
        return next((n for n, t in there.items() if n in self._topics and is_another(self._topics[n], t.id)), "")

    def topic(self, name: str) -> TopicLife:
        """The note of a topic."""
        return self._topics.get(name, TopicLife(""))

    def partition(self, place: Place) -> PartitionLife:
        """The note of a partition."""
        return self._parts.get(self._key(place), PartitionLife())

    def name(self, place: Place) -> str:
        """The name of a partition in its present life."""
        return partition_name(*place, self.topic(place[0]).name, self.partition(place).cuts)

    def _key(self, place: Place) -> str:
        return partition_name(*place, self.topic(place[0]).name)

    def words(self, topic: str) -> str:
        """The words beside the offsets that are committed of a topic."""
        known = self.topic(topic)
        return committed_by(known.cluster, known.id)

    def is_of_a_former_life(self, topic: str, words: str) -> bool:
        """Whether an offset that was committed with these words is of another topic than the present one."""
        known = self.topic(topic)
        return is_of_a_former_life(words, known.cluster, known.id)

    async def read(self, place: Place, epochs: Sequence[tuple[int, int]]) -> None:
        """Notes leader epochs that were read, each with its first position."""
        known = self.partition(place)
        if (fresh := known.with_epochs(epochs)) != known:
            await self._note_partition(place, fresh)

    async def cut(self, place: Place, position: int, end: int) -> None:
        """Follows the tailer's choice for a partition that was read up to `position` and lost its records from `end`
        on (-1: unknown). Raises PositionsGone where that is to stop; else the partition has another life now."""
        await self.load()
        known, name = self.partition(place), self.name(place)
        if end < 0:
            end = known.first_of(known.epoch_before(position))
        words = (
            f"{self._where}: partition {name} lost its records from {end} on (an unclean election?), and was read up "
            f"to {position}: others are, or will be, in their place"
        )
        if self._choice == "stop":
            raise PositionsGone(
                f'{words}. Nothing is passed over without your permission: say in its file under "source" '
                f'"on_recreated: from_start" to go on where they begin; then start it again'
            )
        marks = await self._checkpoints.load(f"{self._tailer}/{name}")
        start = min([end, *(mark.position for mark in marks.values())])
        await self._note_partition(place, known.cut(start))
        log.warning("goes on where a partition lost records", tailer=self._tailer, reason=words, position=start)

    async def _note_topic(self, name: str, life: TopicLife) -> None:
        self._topics[name] = life
        await self._note(TOPIC + name, life.encode())

    async def _note_partition(self, place: Place, life: PartitionLife) -> None:
        self._parts[self._key(place)] = life
        await self._note(self._key(place), life.encode())

    async def _note(self, name: str, note: bytes) -> None:
        version = self._versions[name] = self._versions.get(name, 0) + 1
        try:
            if not self._opened:
                await self._checkpoints.open(self._name, EPOCH)
                self._opened = True
            await self._checkpoints.commit(self._name, EPOCH, {name: Mark(version, note)})
        except Unavailable as error:
            self._versions[name] -= 1
            raise NotConnected(str(error)) from error
