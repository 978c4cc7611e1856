"""The lives of what a tailer reads. A topic, a stream, a log, a folder or a bucket that was deleted and made again has
its old name, and other items at the same positions.

It is known again by a sign of its own, which is noted beside the tailer's checkpoints. Where that is another one the
tailer stops, unless its file says how to go on. Then the partitions of each further life have names of their own, and
with them checkpoints, ledgers and audits.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

#: The choice of how to go on with another one: stop and say so, or read it from its start.
OnRecreated = Literal["stop", "from_start"]
#: Between a partition's name and the name of its life.
MARK = "@"


class Life(NamedTuple):
    """The note of what bears a name.

    id      the sign by which it is known again; empty: it was not there yet, or does not tell
    place   where it is, if two places may have it
    name    tells its partitions from those of earlier lives; empty: this is the first one
    begin   where a partition without a checkpoint begins: `first` (as the options say), or as somebody chose
    starts  positions at which partitions begin that do not begin at their start, by number
    """

    id: str = ""
    place: str = ""
    name: str = ""
    begin: str = "first"
    starts: Mapping[int, int] = {}

    def is_another(self, id: str) -> bool:
        """Whether what has this sign is another one than the one that is noted."""
        return bool(self.id and id and self.id != id)

    def plain(self, partition: str) -> str:
        """The name that a partition of this life would have in the first one; empty: it is of another life."""
        plain, _, life = partition.partition(MARK)
        return plain if life == self.name else ""

    def next(self, now: Life, choice: str) -> Life:
        """The note of `now`, the next one of this name, which is begun as somebody chose. Lives are counted, unless it
        brings a name of its own."""
        return now._replace(name=now.name or str(int(self.name or 1) + 1), begin=choice)


def named(partition: str, life: str) -> str:
    """The name of a partition in a life of what it is of."""
    return f"{partition}{MARK}{life}" if life else partition
