"""Positions that a move of a checkpoint by hand passes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.model.audit import Fate
from tailrace.model.errors import InvalidRequest
from tailrace.model.ledger import LedgerEntry, LedgerPlace
from tailrace.stores.checkpoints.checkpoints import Mark
from tailrace.tailers.partition import Partition
from tailrace.tailers.rules.frontier import Frontier, encode
from tailrace.tailers.rules.seek import passing


def test_what_ended_and_what_is_elsewhere_is_not_dropped() -> None:
    # Given a checkpoint at 10 with 12 settled ahead, 14 in the delay service, 16 a suspect
    frontier = Frontier(10, encode(b"\x00\x00\x01"))
    rows = {14: LedgerEntry(14, LedgerPlace.PARKED, 1), 16: LedgerEntry(16, LedgerPlace.SUSPECT)}
    found = passing(frontier, rows, 20, "t")
    assert found.dropped == [(10, 11), (13, 13), (15, 19)]
    assert (found.items, found.away) == (8, [rows[14]])
    assert passing(frontier, rows, 10, "t").dropped == []


def test_a_checkpoint_never_goes_back_and_what_is_between_two_places_is_not_passed() -> None:
    with pytest.raises(InvalidRequest, match="would go back to 9"):
        passing(Frontier(10), {}, 9, "t")
    with pytest.raises(InvalidRequest, match="at 12 was on its way"):
        passing(Frontier(10), {12: LedgerEntry(12, LedgerPlace.PARKING, 1)}, 13, "t")
    assert passing(Frontier(10), {12: LedgerEntry(12, LedgerPlace.PARKING, 1)}, 12, "t").items == 2


@given(
    ahead=st.lists(st.booleans(), max_size=20),
    places=st.dictionaries(
        st.integers(100, 119), st.sampled_from([LedgerPlace.PARKED, LedgerPlace.SUSPECT, LedgerPlace.DEAD]), max_size=6
    ),
    to=st.integers(100, 130),
)
def test_every_position_that_is_passed_is_accounted_for_once(
    ahead: list[bool], places: dict[int, LedgerPlace], to: int
) -> None:
    mark = Mark(100, encode(bytes(ahead)))
    part = Partition("0", mark)
    rows = {position: LedgerEntry(position, place) for position, place in places.items()}
    found = passing(Frontier(100, mark.ahead), rows, to, "t")
    dropped = {position for first, last in found.dropped for position in range(first, last + 1)}
    away = {row.position for row in found.away}
    ended = {100 + place for place, done in enumerate(ahead) if done and 100 + place < to}
    assert len(dropped) == found.items
    assert dropped | away | ended == set(range(100, to))
    assert not (dropped & away or dropped & ended or away & ended)
    # And the book of the partition says the same once that is applied
    for row in found.away:
        part.settle((row.position,), Fate.DELAYED)
    part.skip(to - 1, Fate.DROPPED)
    part.mark()
    assert part.frontier.position >= to
    assert part.book.tally[Fate.DROPPED] == len(dropped)
    assert (part.book.missing_count, part.book.doubled_count) == (0, 0)


def test_a_move_over_a_billion_positions_takes_no_memory() -> None:
    part = Partition("0", Mark(5, encode(b"\x00\x01")))
    part.skip(1_000_000_000 - 1, Fate.DROPPED)
    mark = part.mark()
    assert mark is not None
    assert mark.position == 1_000_000_000
    assert len(mark.book) < 200
    assert part.book.tally[Fate.DROPPED] == 1_000_000_000 - 6
