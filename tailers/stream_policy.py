"""Policies of stream tailers: the few ways in which the due tailer, or a replay, differs from other stream tailers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from ..model.audit import Fate
from ..model.linger import Linger

#: The time from the beginning of a checkpoint write to the beginning of the next one.
COMMIT_EVERY = Linger(0.02)


class StreamPolicy(NamedTuple):
    """The policy of one stream tailer.

    gap       the fate of positions that the source does not deliver; None: as the source says
    copies    the tailer reads copies of many functions (copy_starts.py): each function has a window of its own and no
              rows; an item that is pushed starts by its row in the ledger of the tailer that it first came from
    jump      the gap between the ends of the partitions, as read, and the next position. The next read waits, where the
              gap is wider than the window, until all items before it are settled, so that it takes no memory; None:
              there are no such gaps
    redrives  items that died here in an order come back here when they are redriven (tailers/redrives.py)
    detaches  an item that runs long is passed while it runs, where the configuration says after how long
    commit_every  the linger between two checkpoints, and `commit_of_each` seconds for each partition of the last one,
                  where that is longer
    """

    gap: Fate | None = None
    copies: bool = False
    jump: Callable[[Mapping[str, int]], int] | None = None
    redrives: bool = True
    detaches: bool = True
    commit_every: Linger = COMMIT_EVERY
    commit_of_each: float = 0.0
