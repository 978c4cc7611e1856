"""Lives of Kafka's topics and partitions (model/life.py). A topic that was deleted and made again, or that is a mirror
of the former one in another cluster, is known by its id (KIP-516), which names its partitions: `orders-3@` and the id.

A partition that lost its end (an unclean election, KIP-320) has another life, too: at the offsets above that there are,
or will be, other records than those that were read. To tell, the first position of each leader epoch is noted before
anything of it is handed out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ...model.life import MARK, named

#: The most leader epochs that are kept of a partition; a window is seldom over more than a few.
MOST_EPOCHS = 64
#: The beginning of the words beside an offset that we commit to a group.
COMMITTED_BY = "tailrace"


class PartitionLife(NamedTuple):
    """The note of a partition, in one life of its topic.

    cuts    how often it lost its end; each begins another life of the partition
    start   where the last of these begins
    epochs  leader epochs, each with the first position that was read of it, rising
    """

    cuts: int = 0
    start: int = 0
    epochs: tuple[tuple[int, int], ...] = ()

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


def partition_name(topic: str, number: int, life: str = "", cuts: int = 0) -> str:
    """The name of a partition, as Kafka's own tools write it: orders-3; in further lives with the name of its life."""
    return named(f"{topic}-{number}", ".".join([life] * bool(life) + [f"cut{cuts}"] * bool(cuts)))


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
