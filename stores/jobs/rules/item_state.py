"""The states of a job's item, by the numbers that its row has."""

from __future__ import annotations

from enum import IntEnum


class ItemState(IntEnum):
    """The state of a job's item. The numbers are in the stores, in migrations too, and never change meaning."""

    PENDING = 0
    SUCCEEDED = 1
    FAILED = 2
