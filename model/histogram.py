"""Histograms of measured values, and how many label sets they may have: a bound, beyond which all others are `other`.

Fed with batches where batches are what there is: a look for the bucket costs more than to count in it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from typing import NamedTuple

#: The label value in place of those that are too many to be told apart.
OTHER = "other"
#: Label sets that one metric has at most, in one process.
LABEL_SETS = 1000


class Exemplar(NamedTuple):
    """One sampled item that was counted in a bucket: its trace, its value, and when, wall clock seconds."""

    trace_id: str
    value: float
    at: float


class Counts:
    """One histogram: how many values in each bucket, their sum, and an example of a sampled one by bucket. The last
    bucket has what is above every bound."""

    __slots__ = ("buckets", "exemplars", "sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.buckets = [0] * (len(bounds) + 1)
        self.sum = 0.0
        self.exemplars: dict[int, Exemplar] = {}

    @property
    def count(self) -> int:
        """Number of values counted."""
        return sum(self.buckets)


def count_sorted(buckets: list[int], bounds: Sequence[float], ordered: Sequence[float], each: int = 1) -> None:
    """Counts values that rise, each so many times: a look for each bucket that has some, and none for each value."""
    before = 0
    while before < len(ordered):
        at = bisect_left(bounds, ordered[before])
        upto = bisect_right(ordered, bounds[at], before) if at < len(bounds) else len(ordered)
        buckets[at] += each * (upto - before)
        before = upto


#: Label values, in the order of their names.
Labels = tuple[str, ...]


class Histograms:
    """Histograms of one metric by label values. Invariant: there are at most `most` and one, that of `other`."""

    def __init__(self, bounds: Sequence[float], names: Sequence[str], most: int = LABEL_SETS) -> None:
        self.bounds = tuple(bounds)
        self.names = tuple(names)
        self.by_labels: dict[Labels, Counts] = {}
        self._most = most
        self._other: Labels = (OTHER,) * len(self.names)

    def of(self, labels: Labels) -> Counts:
        """The histogram of these label values, or of `other` where there are too many."""
        found = self.by_labels.get(labels)
        if found is None:
            if len(self.by_labels) >= self._most:
                labels = self._other
                if labels in self.by_labels:
                    return self.by_labels[labels]
            found = self.by_labels[labels] = Counts(self.bounds)
        return found

    def rows(self) -> list[tuple[Labels, list[int]]]:
        """The counts by bucket of each label values."""
        return [(labels, list(counts.buckets)) for labels, counts in self.by_labels.items()]

    def record(self, labels: Labels, value: float, count: int = 1) -> int:
        """Counts a value, so many times; returns its bucket."""
        found = self.of(labels)
        bucket = bisect_left(self.bounds, value)
        found.buckets[bucket] += count
        found.sum += value * count
        return bucket

    def record_all(self, labels: Labels, values: Iterable[float], each: int = 1) -> None:
        """Counts values of one kind, each so many times; none make no histogram."""
        if ordered := sorted(values):
            found = self.of(labels)
            count_sorted(found.buckets, self.bounds, ordered, each)
            found.sum += each * sum(ordered)

    def add(self, labels: Labels, buckets: Sequence[int], total: float, exemplars: dict[int, Exemplar]) -> None:
        """Adds values that were counted elsewhere, with the same bounds."""
        found = self.of(labels)
        for at, count in enumerate(buckets):
            if count and at < len(found.buckets):
                found.buckets[at] += count
        found.sum += total
        found.exemplars.update(exemplars)
