"""A book is held against the ledger and the dead letters: items that left for them are there, or ended there."""

from __future__ import annotations

from tailrace.model.audit import AFTER_DELAY, Audit
from tailrace.tailers.rules.audit_crosscheck import PartitionFacts, cross_check


def audit_of(**counts: int) -> Audit:
    named = {name.replace("_", " "): count for name, count in counts.items()}
    return Audit("t", "0", 0, sum(counts.values()), named)


def confronted(audit: Audit, before: PartitionFacts, after: PartitionFacts | None = None) -> Audit:
    cross_check(audit, before, after or before)
    return audit


def test_what_was_delayed_is_told_apart_by_what_became_of_it() -> None:
    audit = confronted(audit_of(succeeded=5, delayed=10, dead=1), PartitionFacts(4, 5, 1, 2))
    assert audit.counts == {"succeeded": 5, "delayed": 4, AFTER_DELAY: 5, "dead": 2}
    assert (audit.sum, audit.good) == (16, True)


def test_a_delayed_item_that_is_nowhere_is_found() -> None:
    audit = confronted(audit_of(succeeded=5, delayed=3), PartitionFacts(1, 1, 0, 0))
    assert not audit.good
    assert "1 have no row" in audit.verdict()[0]


def test_a_position_that_was_delayed_and_ended_otherwise_too_is_found() -> None:
    audit = confronted(audit_of(succeeded=6, delayed=2), PartitionFacts(3, 0, 0, 0))
    assert "1 ended in another way too" in audit.verdict()[0]


def test_a_dead_letter_that_vanished_is_found() -> None:
    assert confronted(audit_of(dead=2), PartitionFacts(letters=2)).good
    audit = confronted(audit_of(dead=2), PartitionFacts(letters=1))
    assert "2 positions died, but only 1" in audit.verdict()[0]
    assert not confronted(audit_of(dead=1, delayed=1), PartitionFacts(0, 0, 1, 1)).good


def test_a_position_that_was_passed_without_a_word_is_found() -> None:
    assert confronted(audit_of(dropped=2, lost_to_retention=3), PartitionFacts(dropped=2, forgotten=3)).good
    audit = confronted(audit_of(dropped=2), PartitionFacts(dropped=1))
    assert "2 positions dropped, but only 1 are noted" in audit.verdict()[0]
    assert not confronted(audit_of(lost_to_retention=3), PartitionFacts(dropped=3)).good


def test_what_moves_while_one_asks_is_no_fault() -> None:
    # What is out may have its row before, and what left meanwhile has it after.
    assert confronted(audit_of(succeeded=1, in_flight=2), PartitionFacts(1, 0, 1, 1), PartitionFacts(1, 0, 2, 2)).good
    assert confronted(audit_of(delayed=2), PartitionFacts(), PartitionFacts(2, 0, 0, 0)).good
    # A record that its source forgot while it was parked is lost to retention for the book.
    assert confronted(audit_of(lost_to_retention=1), PartitionFacts(1, 0, 0, 0, forgotten=1)).good
