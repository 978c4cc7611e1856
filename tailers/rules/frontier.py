"""Out-of-order completion → the safe position: everything below it is settled (parallel-consumer's offset map, in the
form of uForwarder's ack tracking queue).

One byte per position between the frontier and the last position read, so that a batch settles with a few operations
at C speed. The settled positions above the frontier travel with the checkpoint as a bitmap, so a restart repeats only
items that were really unsettled.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Sequence

from ...model.errors import InvalidRequest

#: The first byte of an encoding, so that a later form can be told apart.
_FORMAT = b"\x01"
_UNSETTLED = re.compile(b"\x00+")
_TO_TEXT = bytes.maketrans(b"\x00\x01", b"01")
_FROM_TEXT = bytes.maketrans(b"01", b"\x00\x01")


class Frontier:
    """One partition's positions.

    position  everything below it is settled
    end       the next position that was never read here

    Invariants: `_bits` covers [position, end), 1 for settled, and begins with 0 unless empty (after `advance`);
    `_tail` covers positions from `end` on, 1 for those that an earlier run had settled.
    """

    __slots__ = ("_bits", "_tail", "end", "position")

    def __init__(self, position: int, ahead: bytes = b"") -> None:
        self.position = position
        self.end = position
        self._bits = bytearray()
        self._tail = decode(ahead)

    @property
    def span(self) -> int:
        """Number of positions between the frontier and the last one read."""
        return self.end - self.position

    @property
    def known(self) -> int:
        """The position behind the last one of which anything is known."""
        return self.end + len(self._tail)

    @property
    def unsettled(self) -> int:
        """Number of positions read that are not settled."""
        return self._bits.count(0)

    def read(self, positions: Sequence[int], absent: Sequence[int] = ()) -> list[int] | None:
        """Takes note of positions just read, rising. Gaps and `absent` ones count as settled. Returns the indexes of
        the positions to be run, None for all: positions settled by an earlier run and positions read before are not
        among them."""
        count = len(positions)
        if not absent and not self._tail and count and positions[0] == self.end == positions[-1] - count + 1:
            self._bits.extend(bytes(count))
            self.end += count
            return None
        last = max(positions[-1] if count else -1, max(absent, default=-1))
        fresh = max(0, last + 1 - self.end)
        start = self.end
        known = self._tail[:fresh].ljust(fresh, b"\x00")
        added = bytearray(b"\x01") * fresh
        run = []
        for index, position in enumerate(positions):
            place = position - start
            if place >= 0 and not known[place]:
                added[place] = 0
                run.append(index)
        self._tail = self._tail[fresh:]
        self._bits.extend(added)
        self.end += fresh
        return None if len(run) == count else run

    def is_settled(self, position: int) -> bool:
        """Whether a position is settled, here or by an earlier run."""
        place = position - self.position
        if place < len(self._bits):
            return place < 0 or bool(self._bits[place])
        return bool(self._tail[position - self.end : position - self.end + 1] == b"\x01")

    def unread(self, first: int, last: int) -> list[tuple[int, int]]:
        """The ranges from `first` to `last`, both included, that were never read here and that no earlier run had
        settled."""
        first = max(first, self.end)
        if last < first:
            return []
        known = self._tail[first - self.end : last + 1 - self.end]
        found = [(first + run.start(), first + run.end() - 1) for run in _UNSETTLED.finditer(known)]
        if first + len(known) <= last:
            found.append((first + len(known), last))
            if len(found) > 1 and found[-2][1] + 1 == found[-1][0]:
                found[-2:] = [(found[-2][0], last)]
        return found

    def skip(self, last: int) -> None:
        """Counts everything up to `last`, as far as it was never read, as settled."""
        fresh = last + 1 - self.end
        if fresh <= 0:
            return
        self.advance()
        self._tail = self._tail[fresh:]
        self.end += fresh
        if self._bits:
            self._bits.extend(b"\x01" * fresh)
        else:
            self.position = self.end  # however far that is, it takes no memory

    def settle(self, positions: Iterable[int]) -> None:
        """Settles positions that are done or durably elsewhere. Repeats and positions never read are ignored."""
        bits, base, size = self._bits, self.position, len(self._bits)
        for position in positions:
            if 0 <= position - base < size:
                bits[position - base] = 1

    def settle_range(self, first: int, last: int) -> None:
        """Settles everything from `first` to `last`, both included."""
        start, stop = max(0, first - self.position), min(len(self._bits), last + 1 - self.position)
        if stop > start:
            self._bits[start:stop] = b"\x01" * (stop - start)

    def advance(self) -> bool:
        """Moves the frontier over settled positions; returns whether it moved."""
        bits = self._bits
        done = bits.find(0)
        if done < 0:
            done = len(bits)
        if done:
            del bits[:done]
            self.position += done
        return done > 0

    @property
    def newest_settled(self) -> int:
        """The last position read here that is settled; the one before the frontier when none above it is."""
        return self.position + self._bits.rfind(1)

    def unsettled_below(self, end: int, most: int) -> list[int]:
        """Positions below `end`, `most` at most, that were not settled when this frontier was made, and were not read
        since."""
        tail = self._tail
        found: list[int] = []
        place = 0
        while len(found) < most:
            place = tail.find(0, place) if place < len(tail) else place
            place = len(tail) if place < 0 else place
            if self.end + place >= end:
                break
            found.append(self.end + place)
            place += 1
        return found

    def encode(self) -> bytes:
        """The settled positions above `position` as bytes; empty when there are none. `Frontier(position, encode())` is
        as settled as this one, with everything to be read again."""
        return encode(bytes(self._bits) + self._tail)


def encode(bits: bytes) -> bytes:
    """Bytes of 0 and 1 as a compressed bitmap: at most an eighth of a byte per position, a few bytes for long runs."""
    bits = bits.rstrip(b"\x00")
    if not bits:
        return b""
    number = int(bits[::-1].translate(_TO_TEXT), 2)
    return _FORMAT + zlib.compress(number.to_bytes((len(bits) + 7) // 8, "little"), 1)


def decode(ahead: bytes) -> bytes:
    """The inverse of `encode`, without trailing zeros. Raises InvalidRequest for anything else."""
    if not ahead:
        return b""
    if ahead[:1] != _FORMAT:
        raise InvalidRequest(
            f"a checkpoint's settled positions are in format {ahead[0]}, but format {_FORMAT[0]} is expected here: "
            "run the version that wrote the checkpoint"
        )
    try:
        number = int.from_bytes(zlib.decompress(ahead[1:]), "little")
    except zlib.error as error:
        raise InvalidRequest(
            f"a checkpoint's settled positions cannot be read ({error}): put the state back from a backup"
        ) from error
    return bin(number)[2:].encode().translate(_FROM_TEXT)[::-1]
