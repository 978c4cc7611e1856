"""The notes of the lives of topics and partitions (rules/topic_lives.py)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence

from ...model.life import Life
from ...stores.checkpoints.checkpoints import Checkpoints
from ...stores.checkpoints.lives import Lives
from ...stores.kafka.client import Place, Topic
from ..rules.topic_lives import PartitionLife, committed_by, is_of_a_former_life, partition_name

#: The beginning of the names under which topics are noted, which no partition's name has.
TOPIC = "topic:"


class KafkaLives(Lives):
    """The lives of one tailer's topics, and of their partitions. `where` names the cluster for people."""

    def __init__(self, checkpoints: Checkpoints, tailer: str, where: str, choice: str) -> None:
        super().__init__(checkpoints, tailer, choice, ("from_start", "group"))
        self._where = where

    async def meet_all(
        self,
        there: Mapping[str, Topic],
        wanted: Sequence[str],
        cluster: str,
        starts: Callable[[str, int], Awaitable[dict[int, int]]],
    ) -> None:
        """Notes topics that are met for the first time (`starts` tells where the partitions of one begin, by its name
        and their number), and follows the tailer's choice for those that are others now. Raises PositionsGone where
        that is to stop."""
        await self.load()
        for name in wanted:
            known, topic = self.topic(name), there.get(name)
            if topic is None:
                now = Life()  # waited for: it is read from its start
            else:
                now = Life(topic.id or cluster, cluster, topic.id or cluster)
                if not self.knows(TOPIC + name) and not await self._was_read(name, topic.partitions):
                    now = now._replace(starts=await starts(name, topic.partitions))
            there_now = f"it is in the cluster {cluster}, and was in {known.place}"
            why = "it is in another cluster" if known.place != cluster else "it was deleted and made again"
            await self.meet(TOPIC + name, now, f"{self._where}: the topic {name!r}", f"{why}: {there_now}")

    async def _was_read(self, topic: str, partitions: int) -> bool:
        """Whether this tailer has a checkpoint of the topic, from a version that noted no lives."""
        for number in range(partitions):
            if await self._checkpoints.load(f"{self._tailer}/{partition_name(topic, number)}"):
                return True
        return False

    def another_of(self, there: Mapping[str, Topic]) -> str:
        """The name of a topic that is another one than the one that is noted; empty: there is none."""
        return next((name for name, topic in there.items() if self.topic(name).is_another(topic.id)), "")

    def topic(self, name: str) -> Life:
        """The note of a topic."""
        return self.life(TOPIC + name)

    def partition(self, place: Place) -> PartitionLife:
        """The note of a partition."""
        return self.read(self._key(place), PartitionLife())

    def name(self, place: Place) -> str:
        """The name of a partition in its present life."""
        return partition_name(*place, self.topic(place[0]).name, self.partition(place).cuts)

    def _key(self, place: Place) -> str:
        return partition_name(*place, self.topic(place[0]).name)

    def words(self, topic: str) -> str:
        """The words beside the offsets that are committed of a topic."""
        known = self.topic(topic)
        return committed_by(known.place, known.id)

    def is_of_a_former_life(self, topic: str, words: str) -> bool:
        """Whether an offset that was committed with these words is of another topic than the present one."""
        known = self.topic(topic)
        return is_of_a_former_life(words, known.place, known.id)

    async def was_read(self, place: Place, epochs: Sequence[tuple[int, int]]) -> None:
        """Notes leader epochs that were read, each with its first position."""
        known = self.partition(place)
        if (fresh := known.with_epochs(epochs)) != known:
            await self.note(self._key(place), fresh)

    async def cut(self, place: Place, position: int, end: int) -> None:
        """Follows the tailer's choice for a partition that was read up to `position` and lost its records from `end`
        on (-1: unknown). Raises PositionsGone where that is to stop; else the partition has another life now, which
        begins where they began."""
        await self.load()
        known, name = self.partition(place), self.name(place)
        if end < 0:
            end = known.first_of(known.epoch_before(position))
        self.follow(
            f"{self._where}: partition {name} lost its records from {end} on (an unclean election?), and was read up "
            f"to {position}: others are, or will be, in their place",
            '"on_recreated: from_start" goes on where they begin',
        )
        marks = await self._checkpoints.load(f"{self._tailer}/{name}")
        await self.note(self._key(place), known.cut(min([end, *(mark.position for mark in marks.values())])))
