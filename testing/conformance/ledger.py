"""The laws that every ledger obeys (L11, L13, L15 to L18, L20)."""

from __future__ import annotations

import pytest

from ...model.errors import InvalidRequest, StaleFence
from ...model.ledger import NOT_YET
from ...model.ledger import LedgerEntry as Entry
from ...model.ledger import LedgerPlace as Place
from ...model.tries import Try
from ...stores.ledger.ledger import Change, Delayed, Ledger
from ...stores.ledger.ledger import LedgerRow as Row
from .bench import StoreBench
from .ledger_model import LedgerModel, rows

#: The epoch under which most of the laws write.
EPOCH = 5


def parking(position: int, n: int = 1, **fields: float) -> Entry:
    return Entry(position, Place.PARKING, n, **fields)  # type: ignore[arg-type]


def at(entry: Entry, place: Place, **fields: float) -> Entry:
    """The row, moved to `place` and with these fields changed."""
    return entry._replace(place=place, **fields)  # type: ignore[arg-type]


async def written(store: StoreBench[Ledger], *changes: Change, epoch: int | None = EPOCH) -> list[Entry | None]:
    return await store.engine.write("s", "", changes, epoch)


async def opened(store: StoreBench[Ledger], *entries: Entry) -> list[Entry]:
    """Opens the partition under EPOCH and has the entries go their legal way to where they are."""
    await store.engine.open("s", "", EPOCH)
    for entry in entries:
        row: Entry | None = None
        ways = {
            Place.SUSPECT: [Place.SUSPECT],
            Place.DEAD: [Place.DEAD],
            Place.DONE: [Place.SUSPECT, Place.DONE],
            Place.PARKING: [Place.PARKING],
            Place.PARKED: [Place.PARKING, Place.PARKED],
            Place.RUNNING: [Place.PARKING, Place.RUNNING],
        }
        for place in ways[entry.place]:
            epoch = None if place is Place.RUNNING else EPOCH
            step = at(entry, place, fence=entry.fence if place is entry.place else 0)
            assert await written(store, (row, step), epoch=epoch) == [step]
            row = step
    return [*entries]


class LedgerLaws(LedgerModel):
    """Every write compares the row whole; owners write under their epoch; rows leave when over and passed."""

    # L11: owners and their epochs.

    async def test_a_new_ledger_is_empty(self, store: StoreBench[Ledger]) -> None:
        assert await store.engine.open("s", "", EPOCH) == []
        assert await rows(store) == []
        assert await store.engine.counts() == {}
        assert await store.engine.get("s", "", [0, 1]) == {}

    async def test_who_opens_is_told_of_every_row_by_position(self, store: StoreBench[Ledger]) -> None:
        kept = [
            Entry(3, Place.PARKED, 2, 1_700_000_000.123456, 4, 1, 7, (1 << 62) + 1, 0, 1_699_999_999.1),
            Entry(1 << 62, Place.RUNNING, 1, fence=9, epoch=(1 << 31) - 1),
            Entry(0, Place.SUSPECT, crashes=2),
        ]
        await store.engine.open("s", "", EPOCH)
        await written(store, (None, at(kept[0], Place.PARKING, n=1)), (None, at(kept[1], Place.PARKING, fence=0)))
        await written(store, (None, kept[2]), (at(kept[1], Place.PARKING, fence=0), at(kept[1], Place.PARKED, fence=0)))
        first = at(kept[0], Place.PARKING, n=1)
        run = at(first, Place.RUNNING, fence=first.fence + 1)
        last = at(kept[0], Place.PARKING, fence=run.fence)
        parked = at(last, Place.PARKED)
        await written(store, (first, run), (run, last), (last, parked), epoch=None)
        await written(store, (at(kept[1], Place.PARKED, fence=0), kept[1]), epoch=None)
        await store.reopen()
        assert await store.engine.open("s", "", EPOCH + 1) == [kept[2], parked, kept[1]]

    async def test_who_opens_is_not_told_of_what_only_copies_run(self, store: StoreBench[Ledger]) -> None:
        parked, above = await opened(store, Entry(1, Place.PARKED, 1), Entry(5, Place.PARKED, 1))
        await store.engine.passed("s", "", EPOCH, 5)
        await store.reopen()
        assert await store.engine.open("s", "", EPOCH + 1) == [above]
        assert await rows(store) == [parked, above]

    async def test_after_an_opening_the_former_owner_writes_nothing(self, store: StoreBench[Ledger]) -> None:
        # Given a row of an owner, and its successor
        (row,) = await opened(store, parking(1))
        await store.engine.open("s", "", EPOCH + 1)
        await store.reopen()
        # When the owner's late writes arrive
        for late in ((row, at(row, Place.PARKED)), (None, parking(2))):
            with pytest.raises(StaleFence, match="'s'"):
                await written(store, late)
        with pytest.raises(StaleFence):
            await store.engine.passed("s", "", EPOCH, 100)
        with pytest.raises(StaleFence):
            await store.engine.open("s", "", EPOCH)
        # Then nothing moved, and the successor writes
        assert await rows(store) == [row]
        assert await written(store, (row, at(row, Place.PARKED)), epoch=EPOCH + 1) == [at(row, Place.PARKED)]

    async def test_opening_twice_under_one_epoch_is_harmless(self, store: StoreBench[Ledger]) -> None:
        (row,) = await opened(store, parking(1))
        assert await store.engine.open("s", "", EPOCH) == [row]
        assert await written(store, (None, parking(2))) == [parking(2)]

    async def test_what_was_never_opened_is_not_written_by_an_owner(self, store: StoreBench[Ledger]) -> None:
        with pytest.raises(StaleFence):
            await written(store, (None, parking(1)))
        with pytest.raises(StaleFence):
            await store.engine.passed("s", "", EPOCH, 1)
        await store.engine.open("s", "", EPOCH)
        with pytest.raises(StaleFence):
            await written(store, (None, parking(1)), epoch=EPOCH + 1)
        assert await rows(store) == []

    async def test_partitions_and_sources_do_not_mix(self, store: StoreBench[Ledger]) -> None:
        for source, partition, epoch in (("s", "", 1), ("s", "1", 2), ("t", "", 3)):
            await store.engine.open(source, partition, epoch)
            await store.engine.write(source, partition, [(None, parking(7, attempts=epoch))], epoch)
        assert await store.engine.passed("s", "", 1, 100) == 0
        assert await store.engine.list("s", 10) == [Row("", parking(7, attempts=1)), Row("1", parking(7, attempts=2))]
        assert await store.engine.get("t", "", [7]) == {7: parking(7, attempts=3)}
        assert await store.engine.counts() == {"s": {"parking": 2}, "t": {"parking": 1}}

    # L16: compare-and-set of the whole row.

    @pytest.mark.parametrize(
        "changed",
        [
            {"due": 1.0000001},
            {"attempts": 4},
            {"crashes": 4},
            {"throttles": 4},
            {"fence": 4},
            {"epoch": 4},
            {"first_seen": 2.0000001},
        ],
    )
    async def test_a_row_that_differs_in_anything_from_what_was_read_is_not_written(
        self, store: StoreBench[Ledger], changed: dict[str, float]
    ) -> None:
        read = parking(1, due=1.0, attempts=3, crashes=3, throttles=3, fence=3, epoch=3, first_seen=2.0)
        stands = read._replace(**changed)  # type: ignore[arg-type]
        await opened(store, stands)
        assert await written(store, (read, at(read, Place.PARKED, fence=9))) == [stands]
        assert await rows(store) == [stands]

    async def test_a_copy_starts_from_parking_too_and_the_owners_late_parked_does_not_undo_it(
        self, store: StoreBench[Ledger]
    ) -> None:
        # Given a row between its two writes, whose copy came due at once
        (row,) = await opened(store, parking(1))
        run = at(row, Place.RUNNING, fence=9, epoch=3)
        assert await written(store, (row, run), epoch=None) == [run]
        # When the owner, or any other, writes what it would have written over the row it knew
        assert await written(store, (row, at(row, Place.PARKED))) == [run]
        assert await written(store, (row, at(row, Place.PARKED)), epoch=None) == [run]
        # Then the copy's run stands
        assert await rows(store) == [run]

    async def test_of_two_copies_one_starts(self, store: StoreBench[Ledger]) -> None:
        (row,) = await opened(store, Entry(1, Place.PARKED, 1))
        runs = [at(row, Place.RUNNING, fence=fence, epoch=3) for fence in (9, 10)]
        assert await written(store, *[(row, run) for run in runs], epoch=None) == [runs[0], runs[0]]
        assert await rows(store) == [runs[0]]

    async def test_a_run_that_a_newer_owner_took_over_ends_nothing(self, store: StoreBench[Ledger]) -> None:
        # Given a copy that ran when the tailer of what is due died, and its successor's
        (run,) = await opened(store, Entry(1, Place.RUNNING, 1, fence=9, epoch=3))
        newer = at(run, Place.RUNNING, fence=10, epoch=4)
        assert await written(store, (run, newer), epoch=None) == [newer]
        # When the first one's end arrives, whatever it is
        for end in (at(run, Place.DONE), at(run, Place.DEAD), parking(1, 2, fence=9, epoch=3)):
            assert await written(store, (run, end), epoch=None) == [newer]
        # Then the newer run stands, and ends it
        assert await written(store, (newer, at(newer, Place.DONE)), epoch=None) == [at(newer, Place.DONE)]

    async def test_an_owner_ends_and_releases_below_the_checkpoint_what_it_had_detached(
        self, store: StoreBench[Ledger]
    ) -> None:
        away = await opened(store, *[parking(number, due=NOT_YET, fence=8) for number in (1, 2, 3)])
        assert all(row.is_detached for row in await rows(store))
        assert await store.engine.passed("s", "", EPOCH, 9) == 0
        assert await store.engine.waiting("s", "", 0, 9) == 3
        ends = [at(away[0], Place.DONE), at(away[1], Place.PARKING, n=2, due=5.0), at(away[2], Place.PARKING, due=7.0)]
        assert await written(store, *zip(away, ends, strict=True)) == ends
        assert await rows(store) == ends[1:]
        assert await store.engine.delayed("s") == {"": Delayed(2, 1, 0)}

    async def test_what_is_there_is_not_created_and_what_is_not_there_is_not_changed(
        self, store: StoreBench[Ledger]
    ) -> None:
        (row,) = await opened(store, parking(1, attempts=1))
        assert await written(store, (None, parking(1, attempts=2))) == [row]
        assert await written(store, (parking(2), at(parking(2), Place.PARKED))) == [None]
        assert await rows(store) == [row]

    async def test_a_write_whose_answer_was_lost_is_written_when_asked_again(self, store: StoreBench[Ledger]) -> None:
        (row,) = await opened(store, parking(1))
        for _ in range(2):
            assert await written(store, (None, row)) == [row]
        for _ in range(2):
            assert await written(store, (row, at(row, Place.PARKED))) == [at(row, Place.PARKED)]

    async def test_each_change_of_a_batch_is_on_its_own(self, store: StoreBench[Ledger]) -> None:
        first, second = await opened(store, parking(1), parking(2, due=0.1))
        answers = await written(
            store,
            (first, at(first, Place.PARKED)),
            (at(second, Place.PARKING, due=0.2), at(second, Place.PARKED)),
            (None, parking(3, first_seen=0.1 + 0.2)),
        )
        assert answers == [at(first, Place.PARKED), second, parking(3, first_seen=0.1 + 0.2)]
        assert await rows(store) == answers

    async def test_changes_of_one_position_are_made_in_their_order(self, store: StoreBench[Ledger]) -> None:
        await store.engine.open("s", "", EPOCH)
        row = parking(1)
        answers = await written(store, (None, row), (None, parking(2)), (row, at(row, Place.PARKED)))
        assert answers == [row, parking(2), at(row, Place.PARKED)]
        assert await rows(store) == [at(row, Place.PARKED), parking(2)]

    async def test_large_batches_are_one_write(self, store: StoreBench[Ledger]) -> None:
        entries = [parking(number, due=number / 7) for number in range(5000)]
        await store.engine.open("s", "", EPOCH)
        assert await written(store, *[(None, each) for each in entries]) == entries
        assert await store.engine.get("s", "", [*range(4000, 6000)]) == {each.position: each for each in entries[4000:]}
        assert await store.engine.counts() == {"s": {"parking": 5000}}
        assert await written(store) == []

    async def test_pages_follow_each_other_without_gap_or_repeat(self, store: StoreBench[Ledger]) -> None:
        for partition in ("", "1"):
            await store.engine.open("s", partition, EPOCH)
            changes: list[Change] = [(None, parking(number)) for number in (5, 1, 3, 0)]
            await store.engine.write("s", partition, changes, EPOCH)
        seen: list[Row] = []
        while page := await store.engine.list(
            "s", 3, (seen[-1].partition, seen[-1].entry.position) if seen else ("", -1)
        ):
            assert len(page) <= 3
            seen.extend(page)
        assert [(each.partition, each.entry.position) for each in seen] == [
            (partition, number) for partition in ("", "1") for number in (0, 1, 3, 5)
        ]

    # L14, L15, L18: which move is whose.

    @pytest.mark.parametrize(
        ("before", "after", "epoch"),
        [
            (None, Entry(1, Place.PARKED, 1), EPOCH),  # settled before it is parked
            (None, Entry(1, Place.RUNNING, fence=1), None),
            (None, parking(1), None),
            (Entry(1, Place.SUSPECT), Entry(1, Place.RUNNING, fence=1), EPOCH),  # the source's runs are not rows
            (Entry(1, Place.PARKED, 1), Entry(1, Place.SUSPECT, 1), EPOCH),  # never run from the source again
            (Entry(1, Place.RUNNING, 1), Entry(1, Place.PARKED, 1), EPOCH),
            (Entry(1, Place.DONE, 1), parking(1, 2), EPOCH),
            (Entry(1, Place.DEAD, 1), parking(1, 2), None),
            (Entry(1, Place.RUNNING, 1), parking(1, 1), None),  # a second copy with the n of the first
            (Entry(1, Place.PARKED, 1, fence=5), Entry(1, Place.RUNNING, 1, fence=5), None),  # L19
            (Entry(1, Place.PARKED, 1), Entry(2, Place.RUNNING, 1, fence=5), None),
        ],
    )
    async def test_a_move_that_is_not_the_writers_is_refused_and_changes_nothing(
        self, store: StoreBench[Ledger], before: Entry | None, after: Entry, epoch: int | None
    ) -> None:
        await store.engine.open("s", "", EPOCH)
        with pytest.raises(InvalidRequest, match="position"):
            good = parking(50) if epoch is not None else parking(50, 2)
            first = (None, good) if epoch is not None else (Entry(50, Place.RUNNING, 1), good)
            await written(store, first, (before, after), epoch=epoch)
        assert await rows(store) == []

    # L13 and L20: the checkpoint.

    async def test_a_row_below_the_checkpoint_is_never_created(self, store: StoreBench[Ledger]) -> None:
        await store.engine.open("s", "", EPOCH)
        await store.engine.passed("s", "", EPOCH, 10)
        await store.reopen()
        assert await written(store, (None, parking(9)), (None, parking(10))) == [None, parking(10)]
        # Not by a later owner either
        assert await store.engine.open("s", "", EPOCH + 1) == [parking(10)]
        assert await written(store, (None, Entry(3, Place.SUSPECT)), epoch=EPOCH + 1) == [None]

    async def test_the_noted_checkpoint_never_goes_back(self, store: StoreBench[Ledger]) -> None:
        await store.engine.open("s", "", EPOCH)
        await store.engine.passed("s", "", EPOCH, 10)
        await store.engine.passed("s", "", EPOCH, 4)
        assert await written(store, (None, parking(9))) == [None]

    async def test_rows_go_when_they_are_over_and_passed_and_not_before(self, store: StoreBench[Ledger]) -> None:
        done, dead, suspect, parked, high = await opened(
            store,
            Entry(1, Place.DONE),
            Entry(2, Place.DEAD),
            Entry(3, Place.SUSPECT),
            Entry(4, Place.PARKED, 1),
            Entry(8, Place.DONE),
        )
        assert await rows(store) == [done, dead, suspect, parked, high]
        assert await store.engine.passed("s", "", EPOCH, 2) == 1
        assert await rows(store) == [dead, suspect, parked, high]
        assert await store.engine.passed("s", "", EPOCH, 8) == 2
        # What is away stays although passed, what is over stays until it is passed
        assert await rows(store) == [parked, high]
        assert await store.engine.passed("s", "", EPOCH, 9) == 1
        assert await rows(store) == [parked]

    async def test_tries_are_part_of_the_row_that_is_compared(self, store: StoreBench[Ledger]) -> None:
        tried = parking(1)._replace(tries=(Try(0.1 + 0.2, "retry", 'said "é"'), Try(2.0, "throttled", "")))
        (row,) = await opened(store, tried)
        await store.reopen()
        assert await store.engine.get("s", "", [1]) == {1: tried}
        # When somebody compares with the row as it was without them, then nothing is written
        assert await written(store, (parking(1), at(parking(1), Place.PARKED))) == [tried]
        assert await written(store, (row, at(row, Place.PARKED))) == [at(tried, Place.PARKED)]

    async def test_what_was_parked_is_counted_when_it_ends_and_only_once(self, store: StoreBench[Ledger]) -> None:
        # Given parked items, a suspect, and one that died at its source
        await opened(store, *(at(parking(position), Place.RUNNING, fence=1) for position in range(4)))
        await opened(store, parking(4), Entry(5, Place.SUSPECT), Entry(6, Place.DEAD))
        assert await store.engine.delayed("s") == {"": Delayed(waiting=5)}
        # When three end, one of them twice and one from a row that is not so
        for position, place in ((0, Place.DONE), (1, Place.DEAD), (2, Place.DONE), (2, Place.DONE)):
            row = at(parking(position), Place.RUNNING, fence=1)
            await written(store, (row, at(row, place)), epoch=None)
        wrong = at(parking(3), Place.RUNNING, fence=1, attempts=9)
        await written(store, (wrong, at(wrong, Place.DONE)), epoch=None)
        assert await store.engine.delayed("s") == {"": Delayed(2, 2, 1)}
        assert [await store.engine.waiting("s", "", first, 5) for first in (0, 4)] == [2, 1]
        assert await store.engine.waiting("s", "", 0, 4) == await store.engine.waiting("s", "", 3, 4) == 1
        assert await store.engine.waiting("other", "", 0, 9) == 0
        # Then they stay counted when their rows go
        await store.engine.passed("s", "", EPOCH, 7)
        await store.reopen()
        assert await store.engine.delayed("s") == {"": Delayed(2, 2, 1)}
        assert await store.engine.delayed("other") == {}

    @pytest.mark.parametrize("place", [Place.DONE, Place.DEAD])
    async def test_a_row_that_ends_below_the_checkpoint_goes_at_once(
        self, store: StoreBench[Ledger], place: Place
    ) -> None:
        run, other = await opened(store, Entry(1, Place.RUNNING, 1, fence=9), Entry(2, Place.RUNNING, 1, fence=9))
        await store.engine.passed("s", "", EPOCH, 5)
        assert await written(store, (run, at(run, place)), epoch=None) == [at(run, place)]
        assert await rows(store) == [other]
        # Asked again because the answer was lost: there is no row, and none comes back
        assert await written(store, (run, at(run, place)), epoch=None) == [None]
        assert await rows(store) == [other]

    async def test_a_row_that_is_ended_twice_in_one_write_below_the_checkpoint_is_over_for_both(
        self, store: StoreBench[Ledger]
    ) -> None:
        (run,) = await opened(store, Entry(1, Place.RUNNING, 1, fence=9))
        await store.engine.passed("s", "", EPOCH, 5)
        over, again = at(run, Place.DONE), at(run, Place.DEAD)
        assert await written(store, (run, over), (run, again), epoch=None) == [over, over]
        assert await rows(store) == []

    async def test_a_copy_below_the_checkpoint_goes_its_whole_way(self, store: StoreBench[Ledger]) -> None:
        (row,) = await opened(store, Entry(1, Place.PARKED, 1))
        await store.engine.passed("s", "", EPOCH, 100)
        for epoch in (1, 2):
            run = at(row, Place.RUNNING, fence=row.fence + 1, epoch=epoch)
            again = at(run, Place.PARKING, n=run.n + 1, attempts=run.attempts + 1)
            changes: list[Change] = [(row, run), (run, again), (again, at(again, Place.PARKED))]
            assert await written(store, *changes, epoch=None) == [after for _, after in changes]
            row = at(again, Place.PARKED)
        assert await rows(store) == [row]
