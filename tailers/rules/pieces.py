"""Pieces: everything sent or written at once is bounded by bytes, as every message between two parts is (16 MiB)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ...model.workload import FLIGHT_ITEMS

#: Bytes of one piece: far below what a message may have, which holds the largest item (12 MiB) beside them.
PIECE_BYTES = 2 << 20


def pieces(sizes: Iterable[int], most_bytes: int = PIECE_BYTES, most_items: int = FLIGHT_ITEMS) -> Iterator[range]:
    """Items of these sizes, in order, as ranges of so many bytes and items at most. An item that is larger by itself is
    a piece of its own."""
    begin = end = held = 0
    for size in sizes:
        if end > begin and (held + size > most_bytes or end - begin == most_items):
            yield range(begin, end)
            begin, held = end, 0
        end += 1
        held += size
    if end > begin:
        yield range(begin, end)
