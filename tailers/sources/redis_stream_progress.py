"""The progress of a reader of one Redis Stream: how far it was handed out, how many entries that were, and the signs by
which the stream is known again (`rules/retention_loss.py`)."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Sequence

from ..rules.retention_loss import Had, LastRead
from .redis_entries import DIGEST, digest_of

#: The assumed size of an entry before any was seen, bytes.
USUAL_BYTES = 16 << 10


class ReadStream:
    """One stream under a key, and the name of its partition. `had` tells how far it was handed out, `read` its last
    entry; `_passed` has the positions that were handed out, each batch with the number of entries before it, gaplessly
    since `_since`, and `_ends` the last entry of each batch, as far as the checkpoint has not passed them."""

    def __init__(self, key: str, name: str, had: Had, read: LastRead, older: LastRead) -> None:
        self.key = key
        self.name = name
        self.had = had
        self.read = read
        self._ends: deque[LastRead] = deque([read] if read.digest else ())
        self._older, self._noted = older, read
        self.ready = True  # there may be entries to read
        self.size = float(USUAL_BYTES)  # of an entry, about
        self._passed: deque[tuple[list[int], int]] = deque()
        self._since = had.next

    def took(self, positions: list[int], last: Sequence[bytes]) -> None:
        """Notes entries that were handed out; `last`: the fields of the last one."""
        had = self.had
        count = had.entries
        if count >= 0:
            self._passed.append((positions, count))
            count += len(positions)
        self.had = had._replace(next=positions[-1] + 1, entries=count)
        self.read = LastRead(positions[-1], count if had.exact else -1, digest_of(last))
        self._ends.append(self.read)
        if count < 0:
            self._since = self.had.next

    def know(self, had: Had) -> None:
        """Takes another count of entries handed out, if it differs."""
        if had != self.had:
            self.had = had
            self._passed.clear()
            self._since = had.next

    def begin_anew(self, had: Had) -> None:
        """Takes the key's stream for another one, all of which is newer."""
        self.know(had)
        self.read = self._older = self._noted = LastRead()
        self._ends.clear()

    def _signs_below(self, position: int) -> tuple[LastRead, LastRead]:
        """The last entry known by its content that is below a position of the checkpoint, and the one before that was
        noted."""
        while len(self._ends) > 1 and self._ends[1].position < position:
            self._ends.popleft()
        read = self._ends[0] if self._ends and self._ends[0].position < position else LastRead()
        if read.position > self._noted.position:
            self._older, self._noted = self._noted, read
        return self._noted, self._older

    def count_below(self, position: int) -> int:
        """Number of entries that were ever added below a position of the checkpoint; -1: unknown."""
        if not self.had.exact or self.had.entries < 0 or position < self._since:
            return -1
        while self._passed and self._passed[0][0][-1] < position:
            self._passed.popleft()
        if not self._passed:
            return self.had.entries if position >= self.had.next else -1
        positions, before = self._passed[0]
        return before + bisect_left(positions, position)

    def note_below(self, position: int) -> bytes:
        """The signs at a position of the checkpoint, as they are noted; `signs_of` reads them."""
        return b"".join(b"%d %d " % each[:2] + each.digest for each in self._signs_below(position) if each.digest)


def signs_of(note: bytes) -> tuple[LastRead, LastRead]:
    """The two signs in the note of a stream."""
    rest, found = note, [LastRead(), LastRead()]
    for place in range(2):
        if rest:
            position, count, rest = rest.split(b" ", 2)
            found[place] = LastRead(int(position), int(count), rest[:DIGEST])
            rest = rest[DIGEST:]
    return found[0], found[1]
