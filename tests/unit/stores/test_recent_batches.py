"""The batches appended last: found while they are, gone when the bound is passed."""

from __future__ import annotations

from tailrace.stores.log.batch import Batch, rows
from tailrace.stores.log.log import Record
from tailrace.stores.log.recent import RECORD_BYTES, Recent


def add(recent: Recent, partition: str, first: int, time: float, payload: bytes) -> int:
    """Adds a batch of one record. Returns the bytes that it takes."""
    (row,) = rows("s", [Record(payload)])
    recent.add(partition, Batch(first, time, row.columns), row.size)
    return row.size + RECORD_BYTES


def test_what_was_appended_last_is_found_by_its_first_position() -> None:
    """Given two partitions, each batch is found in its own, at its first position only."""
    recent = Recent()
    add(recent, "a", 5, 1.5, b"one")
    add(recent, "b", 5, 2.5, b"two")
    found = recent.find("a", 5)
    assert found is not None
    assert (found.first, found.time, found.columns.payloads) == (5, 1.5, [b"one"])
    assert recent.find("a", 6) is None
    assert recent.find("c", 5) is None


def test_the_oldest_go_when_the_bound_is_passed() -> None:
    """Given a bound of about two batches, the third one pushes out the first."""
    recent = Recent(bound=2 * add(Recent(), "a", 0, 0.0, b"x" * 100))
    for first in range(3):
        add(recent, "a", first, 0.0, b"x" * 100)
    assert recent.find("a", 0) is None
    assert recent.find("a", 1) is not None
    assert recent.find("a", 2) is not None


def test_a_batch_larger_than_the_bound_is_not_kept() -> None:
    """Given a bound smaller than a batch, nothing is kept, and nothing breaks."""
    recent = Recent(bound=1)
    add(recent, "a", 0, 0.0, b"large")
    assert recent.find("a", 0) is None
