"""Lives of a Kafka topic: a topic that was deleted and made again, or that is a mirror of the former one in another
cluster, has the same name and other records at the same offsets.

So what is known of a topic is noted with its id (KIP-516): the partitions of each further life have names of their own,
`orders-3@` and the id, and with them checkpoints, ledgers and audits of their own. The same holds for a partition that
lost its end (an unclean election, KIP-320): at the offsets above that there are, or will be, other records than those
that were read. To tell, the first position of each leader epoch is noted before anything of it is handed out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

#: The choice of what to do with another life: stop and say so, read it from its start, or go on at the offsets that the
#: group has there.
Choice = Literal["stop", "from_start", "group"]
#: Between a partition's name and the name of its life.
MARK = "@"
#: The most leader epochs that are kept of a partition; a window is seldom over more than a few.
MOST_EPOCHS = 64
#: The beginning of the words beside an offset that we commit to a group.
COMMITTED_BY = "tailrace"


class TopicLife(NamedTuple):
    """The note of a topic.

    id       its id, or where the brokers give none, the cluster's; empty: it was not there yet
    cluster  the id of its cluster, as far as known
    name     tells its partitions from those of earlier lives; empty: this is the first one
    begin    where a partition without a checkpoint begins: `first` (the group's offset, else as `start` says),
             `from_start` or `group`
    starts   the positions at which its partitions begin because they were there when the tailer was started first,
             where `start` is `latest`; any other begins at its start
    """

    id: str
    cluster: str = ""
    name: str = ""
    begin: str = "first"
    starts: Mapping[int, int] = {}

    def encode(self) -> bytes:
        """The note as bytes."""
        return json.dumps([self.id, self.cluster, self.name, self.begin, sorted(self.starts.items())]).encode()

    @classmethod
    def decode(cls, note: bytes) -> TopicLife:
        """The note of these bytes."""
        id, cluster, name, begin, starts = json.loads(note)
        return cls(id, cluster, name, begin, dict(starts))


class PartitionLife(NamedTuple):
    """The note of a partition, in one life of its topic.

    cuts    how often it lost its end; each begins another life of the partition
    start   where the last of these begins
    epochs  leader epochs, each with the first position that was read of it, rising
    """

    cuts: int = 0
    start: int = 0
    epochs: tuple[tuple[int, int], ...] = ()

    def encode(self) -> bytes:
        """The note as bytes."""
        return json.dumps([self.cuts, self.start, self.epochs]).encode()

    @classmethod
    def decode(cls, note: bytes) -> PartitionLife:
        """The note of these bytes."""
        cuts, start, epochs = json.loads(note)
        return cls(cuts, start, tuple((epoch, first) for epoch, first in epochs))

    def epoch_before(self, position: int) -> int:
        """The leader epoch of the record before a position; -1: it is not known."""
        return next((epoch for epoch, first in reversed(self.epochs) if first < position), -1)

    def first_of(self, epoch: int) -> int:
        """The first position that was read of a leader epoch."""
        return next((first for each, first in self.epochs if each == epoch), 0)

    def with_epochs(self, read: Sequence[tuple[int, int]]) -> PartitionLife:
        """The note with leader epochs that were read, each with its first position."""
        epochs = list(self.epochs)
        for epoch, first in read:
            if PartitionLife(epochs=tuple(epochs)).epoch_before(first + 1) != epoch:
                epochs = [each for each in epochs if each[1] < first] + [(epoch, first)]
        return self._replace(epochs=tuple(epochs[-MOST_EPOCHS:]))

    def cut(self, start: int) -> PartitionLife:
        """The note of the next life of this partition, which lost its end; it begins at a position."""
        return PartitionLife(self.cuts + 1, start, tuple(each for each in self.epochs if each[1] < start))


def is_another(known: TopicLife, id: str) -> bool:
    """Whether a topic with this id is another one than the one that is noted."""
    return bool(known.id and id and known.id != id)


def next_life(id: str, cluster: str, choice: Choice) -> TopicLife:
    """The note of a topic's next life, whose partitions begin as somebody chose."""
    return TopicLife(id, cluster, id, choice)


def partition_name(topic: str, number: int, life: str = "", cuts: int = 0) -> str:
    """The name of a partition, as Kafka's own tools write it: orders-3; in further lives with the name of its life."""
    name = f"{topic}-{number}"
    marks = [life] * bool(life) + [f"cut{cuts}"] * bool(cuts)
    return name + MARK + ".".join(marks) if marks else name


def place_of(name: str) -> tuple[str, int]:
    """The topic and the number of a partition, the reverse of `partition_name`."""
    topic, _, number = name.partition(MARK)[0].rpartition("-")
    return topic, int(number)


def committed_by(cluster: str, id: str) -> str:
    """The words beside an offset that we commit, which say of which topic it is."""
    return f"{COMMITTED_BY} {cluster} {id}"


def is_of_a_former_life(words: str, cluster: str, id: str) -> bool:
    """Whether an offset with these words was committed by us for another topic of this cluster: a member that ran when
    that was deleted may have told the group once more. What a mirror brings from another cluster it has translated."""
    by, _, rest = words.partition(" ")
    there, _, what = rest.partition(" ")
    return by == COMMITTED_BY and there == cluster and what != id
