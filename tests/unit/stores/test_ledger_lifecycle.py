"""The table of a ledger row's moves, whole, and facts that no write takes back."""

from __future__ import annotations

import pytest

from tailrace.model.ledger import TERMINAL, LedgerEntry, LedgerPlace
from tailrace.stores.ledger.lifecycle import may_move, refusal

S, PARKING, PARKED, R, DONE, DEAD = LedgerPlace
#: Legal moves, by writer and place before. Written out, so that a change of the table is a change of two places.
LEGAL: dict[bool, dict[LedgerPlace | None, set[LedgerPlace]]] = {
    True: {None: {S, PARKING, DEAD}, S: {S, PARKING, DONE, DEAD}, PARKING: {PARKING, PARKED, DONE, DEAD}},
    False: {
        S: {PARKING},
        PARKING: {PARKING, PARKED, R, DONE, DEAD},
        PARKED: {PARKING, R, DONE, DEAD},
        R: {PARKING, PARKED, R, DONE, DEAD},
    },
}


@pytest.mark.parametrize("owner", [True, False])
@pytest.mark.parametrize("before", [None, *LedgerPlace])
@pytest.mark.parametrize("after", list(LedgerPlace))
def test_the_table(owner: bool, before: LedgerPlace | None, after: LedgerPlace) -> None:
    assert may_move(before, after, owner=owner) is (after in LEGAL[owner].get(before, set()))


@pytest.mark.parametrize("before", sorted(set(LedgerPlace) - {S}))
def test_nobody_gives_an_item_that_is_away_back_to_its_source(before: LedgerPlace) -> None:
    assert not any(may_move(before, S, owner=owner) for owner in (True, False))


@pytest.mark.parametrize("before", sorted(TERMINAL))
def test_what_is_over_never_moves(before: LedgerPlace) -> None:
    assert not any(may_move(before, after, owner=owner) for after in LedgerPlace for owner in (True, False))


def test_nothing_is_parked_without_having_been_parking() -> None:
    froms = {
        before for before in [None, *LedgerPlace] for owner in (True, False) if may_move(before, PARKED, owner=owner)
    }
    assert froms == {PARKING, R}, "a copy that ran was parked before"


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        (None, LedgerEntry(1, PARKING, 1), ""),
        (None, LedgerEntry(1, PARKING, 0), "n 0"),
        (None, LedgerEntry(1, PARKING, 2), "n 2"),
        (None, LedgerEntry(1, S, crashes=2), ""),
        (LedgerEntry(1, S), LedgerEntry(1, PARKING, 1), ""),
        (LedgerEntry(1, S), LedgerEntry(2, PARKING, 1), "position 1"),
        (LedgerEntry(1, PARKING, 1), LedgerEntry(1, PARKING, 1, due=5), ""),
        (LedgerEntry(1, PARKING, 1), LedgerEntry(1, PARKING, 3), "n 3"),
        (LedgerEntry(1, PARKING, 1), LedgerEntry(1, PARKED, 1), ""),
        (LedgerEntry(1, PARKING, 1), LedgerEntry(1, PARKED, 2), "n 2"),
        (LedgerEntry(1, PARKING, 1, fence=5), LedgerEntry(1, PARKED, 1, fence=4), "fence 4"),
    ],
)
def test_an_owners_change(before: LedgerEntry | None, after: LedgerEntry, why: str) -> None:
    found = refusal(before, after, owner=True)
    assert why in found
    assert bool(found) is bool(why)


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        (LedgerEntry(1, PARKED, 2, fence=5), LedgerEntry(1, R, 2, fence=6), ""),
        (LedgerEntry(1, PARKED, 2, fence=5), LedgerEntry(1, R, 2, fence=5), "at least 6"),
        (
            LedgerEntry(1, PARKED, 2, fence=5),
            LedgerEntry(1, R, 3, fence=6),
            "",
        ),  # the ledger was restored from a backup
        (LedgerEntry(1, PARKED, 2, fence=5), LedgerEntry(1, R, 1, fence=6), "n 1"),
        (LedgerEntry(1, R, 2, fence=6), LedgerEntry(1, R, 2, fence=7), ""),
        (LedgerEntry(1, R, 2, fence=6), LedgerEntry(1, PARKING, 3, fence=6), ""),
        (LedgerEntry(1, R, 2, fence=6), LedgerEntry(1, PARKING, 2, fence=6), "n 2"),
        (LedgerEntry(1, R, 2, fence=6), LedgerEntry(1, PARKED, 2, fence=6), ""),  # it was throttled
        (LedgerEntry(1, R, 2, fence=6), LedgerEntry(1, PARKED, 3, fence=6), "n 3"),
        (LedgerEntry(1, R, 2, fence=6), LedgerEntry(1, DONE, 2, fence=6), ""),
        (LedgerEntry(1, R, 2, fence=6), LedgerEntry(1, DEAD, 3, fence=6), "n 3"),
        (LedgerEntry(1, PARKING, 2), LedgerEntry(1, PARKED, 2), ""),
        (None, LedgerEntry(1, PARKING, 1), "a due copy may not"),
    ],
)
def test_a_copys_change(before: LedgerEntry | None, after: LedgerEntry, why: str) -> None:
    found = refusal(before, after, owner=False)
    assert why in found
    assert bool(found) is bool(why)
