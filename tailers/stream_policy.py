"""Policies of stream tailers: in which few things one that reads what is due, or a replay, differs from the others."""

from __future__ import annotations

from typing import NamedTuple

from ..model.audit import Fate

#: Checkpoint writes begin at least this far apart, seconds.
COMMIT_EVERY = 0.02


class StreamPolicy(NamedTuple):
    """The policy of one stream tailer.

    gap       what positions are that do not come; None: as its source says
    starts    what is pushed starts by its row, and is handed out then
    detaches  what runs long is passed while it runs, where the configuration says after how long
    commit_every  seconds between two checkpoints, at least, and `commit_of_each` for each partition of the last one
    """

    gap: Fate | None = None
    starts: bool = False
    detaches: bool = True
    commit_every: float = COMMIT_EVERY
    commit_of_each: float = 0.0
