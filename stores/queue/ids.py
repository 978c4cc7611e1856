"""Ids of queued workloads, the same on every engine: they rise, contain their time, and need no server."""

from __future__ import annotations

import random

_EPOCH_2020_MS = 1_577_836_800_000
#: The latest milliseconds that an id can contain; later ids only count up. Above them is room for the ids of two years,
#: so that enough are left after a clock was beyond them for a moment.
_LATEST_MS = (1 << 41) - (1 << 36)


class Ids:
    """63-bit ids that rise: 41 bits of milliseconds since 2020, and 22 bits that start at random in each millisecond.
    Ids of two writers collide only within one millisecond, with a chance of one in two million, and then the table
    refuses the second one."""

    def __init__(self, last: int) -> None:
        self.last = last

    def take(self, count: int, now_ms: int) -> list[int]:
        """The next `count` ids."""
        first = max(self.last + 1, first_id(now_ms) | random.getrandbits(21))
        self.last = first + count - 1
        return list(range(first, first + count))


def id_text(number: int) -> str:
    """The id that users see: 16 hexadecimal digits."""
    return f"{number:016x}"


def id_number(text: str) -> int:
    """The number of an id in text; -1 for text that is no id of this store."""
    if len(text) != 16 or not (text.isascii() and text.isalnum()):
        return -1
    try:
        number = int(text, 16)
    except ValueError:
        return -1
    return number if number < 1 << 63 else -1


def created_at(number: int) -> float:
    """Time at which an item was submitted, in wall clock seconds, read from its id."""
    return ((number >> 22) + _EPOCH_2020_MS) / 1000


def first_id(ms: int) -> int:
    """The lowest id of an item made at that time, milliseconds since 1970, or later."""
    return min(max(0, ms - _EPOCH_2020_MS), _LATEST_MS) << 22
