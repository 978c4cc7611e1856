"""The batches appended last: found while they are, gone when the bound is passed."""

from __future__ import annotations

from tailrace.stores.log.batch import rows
from tailrace.stores.log.log import Record
from tailrace.stores.log.recent import Recent


def columns(payload: bytes) -> bytes:
    """One record as a row has it."""
    ((_, _, blob),) = rows("s", [Record(payload)])
    return blob


def test_what_was_appended_last_is_found_by_its_first_position() -> None:
    """Given two partitions, each batch is found in its own, at its first position only."""
    recent = Recent()
    recent.add("a", 5, 1.5, columns(b"one"))
    recent.add("b", 5, 2.5, columns(b"two"))
    found = recent.find("a", 5)
    assert found is not None
    assert (found.first, found.time, found.columns.payloads) == (5, 1.5, [b"one"])
    assert recent.find("a", 6) is None
    assert recent.find("c", 5) is None


def test_the_oldest_go_when_the_bound_is_passed() -> None:
    """Given a bound of about two batches, the third one pushes out the first."""
    blob = columns(b"x" * 100)
    recent = Recent(bound=2 * len(blob))
    for first in range(3):
        recent.add("a", first, 0.0, blob)
    assert recent.find("a", 0) is None
    assert recent.find("a", 1) is not None
    assert recent.find("a", 2) is not None


def test_a_batch_larger_than_the_bound_is_not_kept() -> None:
    """Given a bound smaller than a batch, nothing is kept, and nothing breaks."""
    recent = Recent(bound=1)
    recent.add("a", 0, 0.0, columns(b"large"))
    assert recent.find("a", 0) is None
