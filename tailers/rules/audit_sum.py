"""Sum of an audit of a stream: THE rule by which every position of a range is in exactly one class.

Below the frontier the book has counted how everything ended; a part of that is told apart by the ranges of positions
that did not succeed, which rest beside the checkpoint. Above the frontier every position is looked at: it ended, or it
is in exactly one of the places where an item may be (in flight, held), or it was not read yet. An item in no place is
lost although nothing has passed it yet; one in two places may run twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from ...model.audit import HELD, IN_FLIGHT, NAMED, SETTLED, UNREAD, Audit, Ending, Fate, Passed
from ...model.errors import InvalidRequest
from .audit_book import Book
from .sparse_book import SparseBook


def audit_of(
    tailer: str, partition: str, book: Book, places: Mapping[str, Iterable[int]], span: tuple[int, int] | None = None
) -> Audit:
    """The audit of the positions in `span` (first, end); None: of everything from the book's start to the last one
    read. `places` names the positions that have not ended by where they are: HELD, IN_FLIGHT.

    Raises InvalidRequest for a range that begins before the book.
    """
    first, end = span or (book.start, book.end)
    if first < book.start or end < first:
        raise InvalidRequest(
            f"{tailer}, partition {partition!r}: the range {first}:{end} cannot be audited: it must begin at "
            f"{book.start}, where the audit began, or later, and end at its beginning or later"
        )
    audit = Audit(tailer, partition, first, end)
    if isinstance(book, SparseBook):
        if span is not None:
            raise InvalidRequest(
                f"{tailer}, partition {partition!r}: its positions are far apart, so a range of them cannot be summed "
                "up: audit it as a whole"
            )
        audit.items = book.items
    _below(audit, book)
    _above(audit, book, places)
    audit.counts = {label: count for label, count in audit.counts.items() if count}
    return audit


def _below(audit: Audit, book: Book) -> None:
    """Sums up the positions that the frontier has passed."""
    stop = min(audit.end, book.position)
    if audit.first == book.start and stop == book.position:
        audit.counts = {fate.label: book.tally[fate] for fate in Fate}
        audit.missing, audit.missing_count = [*book.missing], book.missing_count
        audit.doubled, audit.doubled_count = [*book.doubled], book.doubled_count
        return
    missing = [position for position in book.missing if audit.first <= position < stop]
    audit.missing, audit.missing_count = missing, len(missing)  # until it is told apart
    audit.doubled = [position for position in book.doubled if audit.first <= position < audit.end]
    audit.doubled_count = len(audit.doubled)
    if book.doubled_count > len(book.doubled):
        audit.faults.append(f"the whole partition has {book.doubled_count} positions counted twice, not all named")
    audit.counts = {SETTLED: max(0, stop - audit.first) - len(missing)}
    audit.passed = Passed(book.position, book.told, tuple(book.endings))


def tell_apart(audit: Audit, kept: Sequence[Ending]) -> None:
    """Tells apart how the `settled` positions of the audit of a range ended. `kept` are the endings that rest in the
    store, asked for after the audit was summed up. Positions older than all endings, or cut out of several endings that
    are one now, stay `settled`."""
    passed = audit.passed
    if passed is None or (stop := min(audit.end, passed.position)) <= audit.first:
        return
    start = max(audit.first, min(passed.told, stop))
    blurred = [(audit.first, start - 1)]
    counts: Counter[int] = Counter()
    named: list[int] = []
    told = 0
    durable = kept[-1].last if kept else -1
    for ending in (*kept, *(each for each in passed.endings if each.last > durable)):
        first, last = max(ending.first, start), min(ending.last, stop - 1)
        if ending.last > durable:
            first = max(first, durable + 1)
        if first > last:
            continue
        told += last - first + 1
        fate = ending.plain
        if fate is not None:
            counts[fate] += last - first + 1
            named += range(first, min(last, first + NAMED) + 1) if not fate else ()
        elif (first, last) == (ending.first, ending.last):
            counts.update(ending.counts)
            counts[Fate.SUCCEEDED] += ending.length - sum(ending.counts.values())
        else:
            blurred.append((first, last))
    counts[Fate.SUCCEEDED] += stop - start - told
    below = [position for position in audit.missing if position < stop]
    lost = [position for position in below if any(first <= position <= last for first, last in blurred)]
    settled = sum(last - first + 1 for first, last in blurred) - len(lost)
    audit.missing_count += counts.pop(0, 0) + len(lost) - len(below)
    audit.missing = sorted({*audit.missing, *named})[:NAMED]
    labels = Counter({label: count for label, count in audit.counts.items() if label != SETTLED})
    labels.update({Fate(fate).label: count for fate, count in counts.items()})
    labels[SETTLED] = settled
    audit.counts = {label: count for label, count in labels.items() if count}


def _above(audit: Audit, book: Book, places: Mapping[str, Iterable[int]]) -> None:
    """Sums up the positions that the frontier has not passed, one by one."""
    first = max(audit.first, book.position)
    if first >= audit.end:
        return
    counts = audit.counts
    for fate, count in book.ended(first, audit.end).items():
        counts[fate.label] = counts.get(fate.label, 0) + count
    counts[UNREAD] = max(0, audit.end - max(first, book.end))
    left = {position for position in book.open() if first <= position < audit.end}
    twice: list[int] = []
    for place in (IN_FLIGHT, HELD):
        count = 0
        for position in places.get(place, ()):
            if position in left:
                left.remove(position)
                count += 1
            elif first <= position < audit.end:
                twice.append(position)  # it is in another place too, or has ended
        counts[place] = count
    audit.doubled_count += len(twice)
    audit.doubled = [*audit.doubled, *sorted(twice)][:NAMED]
    audit.missing_count += len(left)
    audit.missing = [*audit.missing, *sorted(left)][:NAMED]
