"""Policies of stream tailers: in which few things one that reads what is due, or a replay, differs from the others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from ..model.audit import Fate

#: Checkpoint writes begin at least this far apart, seconds.
COMMIT_EVERY = 0.02


class StreamPolicy(NamedTuple):
    """The policy of one stream tailer.

    gap       what positions are that do not come; None: as its source says
    copies    it reads copies of many functions (copy_starts.py): each function has a window of its own and no rows, and
              what is pushed starts by its row, which is its source's
    jump      how far what comes next lies behind what was read, by the ends of the partitions: further than the window
              is wide, it is read when all before it is settled, and takes no memory; None: it never is
    detaches  what runs long is passed while it runs, where the configuration says after how long
    commit_every  seconds between two checkpoints, at least, and `commit_of_each` for each partition of the last one
    """

    gap: Fate | None = None
    copies: bool = False
    jump: Callable[[Mapping[str, int]], int] | None = None
    detaches: bool = True
    commit_every: float = COMMIT_EVERY
    commit_of_each: float = 0.0
