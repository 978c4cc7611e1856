"""Policies of stream tailers: in which few things one that reads what is due, or a replay, differs from the others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from ..model.audit import Fate
from ..model.linger import Linger

#: From the beginning of a checkpoint write to that of the next one.
COMMIT_EVERY = Linger(0.02)


class StreamPolicy(NamedTuple):
    """The policy of one stream tailer.

    gap       what positions are that do not come; None: as its source says
    copies    it reads copies of many functions (copy_starts.py): each function has a window of its own and no rows, and
              what is pushed starts by its row, which is its source's
    jump      how far what comes next lies behind what was read, by the ends of the partitions: further than the window
              is wide, it is read when all before it is settled, and takes no memory; None: it never is
    detaches  what runs long is passed while it runs, where the configuration says after how long
    commit_every  the linger between two checkpoints, and `commit_of_each` seconds for each partition of the last one,
                  where that is longer
    """

    gap: Fate | None = None
    copies: bool = False
    jump: Callable[[Mapping[str, int]], int] | None = None
    detaches: bool = True
    commit_every: Linger = COMMIT_EVERY
    commit_of_each: float = 0.0
