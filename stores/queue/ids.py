"""The ids of queued workloads, the same on every engine: they rise, tell when they were made, and need no server."""

from __future__ import annotations

import random

_EPOCH_2020_MS = 1_577_836_800_000
#: The latest milliseconds that an id tells; later ones go on by count. Behind them is room for as many ids as two years
#: have, so that a clock that was beyond them for a moment leaves enough.
_LATEST_MS = (1 << 41) - (1 << 36)


class Ids:
    """63-bit ids that rise: 41 bits of milliseconds since 2020, 22 bits that start at random within each. Ids of
    several writers never meet but by a one in two million chance within a millisecond, and then the table refuses."""

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
    """The inverse; -1 for text that is no id of this store."""
    if len(text) != 16 or not (text.isascii() and text.isalnum()):
        return -1
    try:
        number = int(text, 16)
    except ValueError:
        return -1
    return number if number < 1 << 63 else -1


def created_at(number: int) -> float:
    """When an item was submitted, wall clock seconds: its id says so."""
    return ((number >> 22) + _EPOCH_2020_MS) / 1000


def first_id(ms: int) -> int:
    """The lowest id of an item made at that time, milliseconds since 1970, or later."""
    return min(max(0, ms - _EPOCH_2020_MS), _LATEST_MS) << 22
