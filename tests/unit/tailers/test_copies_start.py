"""Copies that come due start by compare-and-set of their rows, without a read where this process parked them itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.foundation.clock import SYSTEM_CLOCK
from tailrace.model.ledger import NOT_YET, LedgerEntry, LedgerPlace
from tailrace.model.parked import Parked, due_stream, parked_headers
from tailrace.model.workload import Kind
from tailrace.sdk.source import StreamBatch
from tailrace.stores.checkpoints.checkpoints import Mark
from tailrace.tailers.copy_starts import Starting, StartStep
from tailrace.tailers.items import Items
from tailrace.tailers.ledger import row_cache
from tailrace.tailers.ledger.row_cache import RowCache
from tailrace.tailers.ledger.rows import RowChange, RowHome
from tailrace.tailers.mapping.mapping import ParkedMapping
from tailrace.tailers.partition import Partition
from tailrace.tailers.pumps.copy_starter import CopyStarter
from tailrace.tailers.rules.credit import Credit
from tailrace.tailers.rules.ledger import CopyVerdict, copy_finds, may_start_unread

EPOCH = 3


class Ledger:
    """Rows as a tailer sees them; `reads` says which were asked for."""

    def __init__(self, *rows: LedgerEntry) -> None:
        self.rows = {home(row.position): row for row in rows}
        self.reads: list[RowHome] = []

    async def read(self, homes: Sequence[RowHome]) -> dict[RowHome, LedgerEntry]:
        self.reads += homes
        return {each: self.rows[each] for each in homes if each in self.rows}

    async def write(self, changes: Sequence[RowChange]) -> list[LedgerEntry | None]:
        for change in changes:
            if self.rows.get(change.home) == change.before:
                self.rows[change.home] = change.after
        return [self.rows.get(change.home) for change in changes]


class Epoch:
    """An owner of the due streams."""

    number = EPOCH

    def next_fence(self, above: int) -> int:
        return above + 1


def home(position: int) -> RowHome:
    return RowHome("orders", "0", position)


def parking(position: int, n: int = 1, due: float = 0.0, **more: Any) -> LedgerEntry:
    return LedgerEntry(position, LedgerPlace.PARKING, n, due, fence=7, **more)


def starting(*copies: tuple[int, int]) -> Starting:
    """Copies by position and n."""
    parked = [
        Parked("orders", f"orders/0/{at}", Kind("f"), b"{}", 0.0, 0.0, n + 1, fence=7, partition="0", position=at, n=n)
        for at, n in copies
    ]
    positions = list(range(len(copies)))
    headers = [parked_headers(item) for item in parked]
    batch = StreamBatch(
        due_stream("f"), positions, [0.0] * len(copies), [""] * len(copies), headers, [b"{}"] * len(copies)
    )
    mapped = ParkedMapping().map(batch)
    return Starting(Items(Partition("f", Mark(0)), batch, mapped), Counter(mapped.cells), Credit(), {})


async def started(ledger: Ledger, known: RowCache, *copies: tuple[int, int]) -> StartStep:
    starter = CopyStarter("due", cast(Any, ledger), cast(Any, Epoch()), known, SYSTEM_CLOCK)
    [step] = await starter.ask([starting(*copies)], may_be_adopted=False)
    return step


def knowing(*rows: LedgerEntry) -> RowCache:
    known = RowCache()
    known.keep([(home(row.position), row) for row in rows])
    return known


async def test_what_was_parked_here_starts_without_a_read() -> None:
    # Given rows of which this process wrote one, and remembers it
    ledger = Ledger(parking(1), parking(2))
    # When the copies of both come due
    step = await started(ledger, knowing(parking(1)), (1, 1), (2, 1))
    # Then both run, and only the other one's row was read
    assert step.going == [0, 1]
    assert ledger.reads == [home(2)]
    assert {row.place for row in ledger.rows.values()} == {LedgerPlace.RUNNING}
    assert {row.fence for row in ledger.rows.values()} == {step.fence}


async def test_a_row_that_was_written_since_starts_nothing_and_is_read_the_next_time() -> None:
    # Given a row that another process wrote after this one
    ledger = Ledger(parking(1, n=2, due=5.0))
    known = knowing(parking(1))
    # When the first copy comes due
    step = await started(ledger, known, (1, 1))
    # Then it does not run, and its row is as it was
    assert (step.going, step.again) == ([], [0])
    assert ledger.rows[home(1)].place is LedgerPlace.PARKING
    # When it asks again
    step = await started(ledger, known, (1, 1))
    # Then its row is read, which says that the later one is to be appended (L18)
    assert ledger.reads == [home(1)]
    assert list(step.append) == [0]


async def test_two_copies_of_one_item_are_judged_by_its_row_alone() -> None:
    # Given a remembered row, and a later one in the ledger
    later = parking(1, n=2)
    ledger = Ledger(later)
    # When the copies of both come due together
    step = await started(ledger, knowing(parking(1)), (1, 1), (1, 2))
    # Then the row was read, the later one runs, and the earlier one has the later one appended again
    assert ledger.reads == [home(1), home(1)]
    assert (step.going, list(step.append)) == ([1], [0])


@pytest.mark.parametrize("row", [parking(1, due=NOT_YET), parking(1, due=4e9), parking(1, n=2), parking(1, epoch=9)])
async def test_nothing_but_a_start_rests_on_what_is_remembered(row: LedgerEntry) -> None:
    ledger = Ledger(row)
    if row.epoch <= EPOCH:
        await started(ledger, knowing(row), (1, 1))
    assert not may_start_unread(row, 1, EPOCH, 100.0)
    assert row.epoch > EPOCH or ledger.reads == [home(1)]


ROWS = st.builds(
    LedgerEntry,
    position=st.just(1),
    place=st.sampled_from(LedgerPlace),
    n=st.integers(0, 3),
    due=st.sampled_from([0.0, 50.0, 150.0, NOT_YET]),
    epoch=st.integers(0, 5),
)


@given(ROWS, st.integers(1, 3))
def test_what_may_start_unread_would_start_when_read(row: LedgerEntry, n: int) -> None:
    if may_start_unread(row, n, EPOCH, 100.0):
        assert copy_finds(row, n, EPOCH) is CopyVerdict.START
        assert row.due <= 100.0


def test_few_rows_are_remembered_and_each_is_taken_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_cache, "MOST", 3)
    known = knowing(*(parking(at) for at in range(5)))
    assert len(known) == 3
    assert known.take(home(1)) is None
    assert known.take(home(4)) == parking(4)
    assert known.take(home(4)) is None
