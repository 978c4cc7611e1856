"""Entries that a stream's retention took before they were read, and streams that are others than they were. For streams
that forget from their head, whose positions are far apart.

The last entry read says nothing when it is gone: it was read. Whether entries between it and the first one that is left
are gone too, only counting tells: of all entries that were ever added, `added - length` are no longer there; when the
reader has had at least as many, nothing was taken from it. A deletion in the middle looks like one from the head, so
where somebody deletes ahead of the reader, or nobody counted, entries that may have been lost count as lost: never
silently.
"""

from __future__ import annotations

from typing import NamedTuple


class StreamFacts(NamedTuple):
    """A stream as it is now. `first` and `last` are positions: of the first entry that is there (None: none is), and of
    the last one that was ever added (-1: none was). `added`: how many ever were (-1: it does not say)."""

    length: int
    first: int | None
    last: int
    added: int = -1
    deleted: int = -1  # the highest position that was ever deleted by its name

    @property
    def removed(self) -> int:
        """Number of entries that are no longer there; -1: unknown."""
        return self.added - self.length if self.added >= 0 else -1


class Had(NamedTuple):
    """Entries that a reader has had: all below `next`, the first `entries` of all that were ever added (-1: unknown).
    `exact`: they are not fewer than it has had; else it may have had more."""

    next: int
    entries: int = -1
    exact: bool = True


class Taken(NamedTuple):
    """Positions from `first` to `last` that held entries which are gone; `items`: the number of these (0: nobody
    knows)."""

    first: int
    last: int
    items: int = 0


def taken_by_retention(had: Had, facts: StreamFacts) -> Taken | None:
    """The positions that retention took before the reader had them; None: there are none."""
    stop = facts.last + 1 if facts.first is None else facts.first
    if stop <= had.next or not facts.removed:
        return None
    known = had.entries >= 0 and facts.removed >= 0
    items = facts.removed - had.entries if known else 0
    if known and items <= 0:
        return None
    sure = known and had.exact and not had.next <= facts.deleted < stop
    return Taken(had.next, stop - 1, items if sure else 0)


def opened(next_position: int, noted: Had | None, facts: StreamFacts) -> Had:
    """The entries that a reader has had which goes on at a position; `noted` is the last note of it, made there or
    before."""
    if noted is None or noted.next > next_position:
        return Had(next_position, -1, False)
    return still(Had(next_position, noted.entries, noted.next == next_position), facts)


def still(had: Had, facts: StreamFacts) -> Had:
    """The entries that a reader has had, where the stream may have been deleted and made again: then everything that is
    gone of the new stream counts as had."""
    return had._replace(entries=facts.removed, exact=True) if 0 <= facts.added < had.entries else had


def at_end(had: Had, facts: StreamFacts) -> Had:
    """The entries that a reader has had, where it may have had everything: then it has had as many as were ever
    added."""
    return had._replace(entries=facts.added, exact=True) if facts.last < had.next and facts.added >= 0 else had


class LastRead(NamedTuple):
    """An entry that was read, as a sign of its stream: its position (-1: none is known), how many entries were ever
    `added` up to it (-1: unknown), and a digest of its content."""

    position: int = -1
    added: int = -1
    digest: bytes = b""


def is_another(read: LastRead, digest: bytes | None, facts: StreamFacts) -> bool:
    """Whether a stream was deleted and made again since an entry was `read`. `digest`: of the entry that is at its
    position now; None: none is. An entry that is gone was deleted by its name, or trimmed, and then all before it are
    gone as well. A key that is gone is no stream yet, but waited for."""
    if read.position < 0 or facts.last < 0:
        return False
    if digest is not None:
        return digest != read.digest
    if facts.last < read.position or 0 <= facts.added < read.added:
        return True
    return facts.deleted < read.position and 0 <= facts.removed < max(1, read.added)


def passes_over(next_position: int, facts: StreamFacts) -> bool:
    """Whether a reader that goes on at a position of a former stream would never read entries of another one."""
    first = facts.last if facts.first is None else facts.first
    return 0 <= first < next_position
