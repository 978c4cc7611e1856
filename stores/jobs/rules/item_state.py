"""States of a job's item, by their numbers in its row."""

from __future__ import annotations

from enum import IntEnum


class ItemState(IntEnum):
    """The state of a job's item. The numbers are in the stores, in migrations too, and never change meaning."""

    PENDING = 0
    SUCCEEDED = 1
    FAILED = 2
