"""Drops: positions of a stream that were passed without being run, and by whose word."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple


class Cause(IntEnum):
    """Causes for which positions are passed."""

    GATE = 1  # an operator's gate dropped them
    RETENTION = 2  # the source forgot them before they were done, and the tailer's file allows that
    SEEK = 4  # an operator moved the checkpoint past them
    ABSENT = 3  # nothing (any more) is there: compacted, a marker, a file that its owner took away


class Drop(NamedTuple):
    """A range of positions, `items` of which (all, as a rule) were passed for one reason.

    version   of the gate; of a seek: its epoch; 0 for the other causes
    who, why  the gate's, or what allowed it
    at        wall clock seconds, of the latest one
    """

    first: int
    last: int
    items: int
    cause: Cause
    version: int = 0
    who: str = ""
    why: str = ""
    at: float = 0.0


class DropRow(NamedTuple):
    """A range and whose it is: `source` is the tailer's name."""

    source: str
    partition: str
    drop: Drop
