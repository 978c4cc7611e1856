"""The laws of a state that moved: put back from a copy, or to another server than the one that gave out its streams."""

from __future__ import annotations

from typing import Protocol

import pytest

from ...model.errors import StaleFence, Unavailable
from ...model.ledger import LedgerEntry, LedgerPlace
from ...model.tries import Try
from ...stores.checkpoints.checkpoints import Mark
from ...stores.ownership.ownership import Owner
from ...stores.state.state import StateStores
from ...tailers.rules.ledger import CopyVerdict, Due, copy_finds, running
from .bench import StoreBench, StoreLaws

LEASE = 36.0
#: More rows than any engine writes in one step.
MANY = 1100


class MovingBench(StoreBench[StateStores], Protocol):
    """An engine that can be moved. `move` puts the same data elsewhere, as after a failover or a restore, and
    `wait_out` lets the lease of a source pass, for which nothing is taken then."""

    async def move(self) -> None: ...

    async def wait_out(self) -> None: ...


async def own(state: StateStores, source: str = "s") -> Owner:
    """Takes a source, with its checkpoint and its ledger, as somebody who just read its row."""
    row = await state.ownership.read(source, "0")
    owner = await state.ownership.take(source, "0", "me", LEASE, row.version if row else 0)
    assert owner is not None
    await state.checkpoints.open(f"{source}/0", owner.epoch)
    await state.ledger.open(source, "0", owner.epoch)
    return owner


async def park(state: StateStores, owner: Owner, source: str, parked: list[LedgerEntry]) -> list[LedgerEntry]:
    """Writes the rows of an append, before it and after it, as their owner does."""
    parking = [row._replace(place=LedgerPlace.PARKING) for row in parked]
    await state.ledger.write(source, "0", [(None, row) for row in parking], owner.epoch)
    await state.ledger.write(source, "0", list(zip(parking, parked, strict=True)), owner.epoch)
    return parked


class MovedLaws(StoreLaws[StateStores]):
    """The laws of a move: nothing is taken until all runs from before it are over, and no owner from before goes on.
    Takes a MovingBench."""

    async def test_no_owner_from_before_goes_on_and_the_next_one_is_above_all(self, store: MovingBench) -> None:
        # Given an owner, and counts that a source keeps without one
        owner = await own(store.engine)
        await store.engine.checkpoints.open("counts", 1)
        # When the state moves, then nothing is taken and nothing of the owner is written
        await store.move()
        state, epoch = store.engine, owner.epoch
        with pytest.raises(Unavailable):
            await own(state, "other")
        for write in (
            state.ownership.renew("s", "0", epoch, ()),
            state.checkpoints.commit("s/0", epoch, {"0": Mark(9)}),
            state.ledger.write("s", "0", [(None, LedgerEntry(9, LedgerPlace.PARKING, 1))], epoch),
        ):
            with pytest.raises(StaleFence):
                await write
        await state.checkpoints.commit("counts", 1, {"0": Mark(9)})
        # And whoever takes it when the wait is over writes under an epoch above all before
        row = await state.ownership.read("s", "0")
        await store.wait_out()
        again = await own(state)
        assert row is not None and again.epoch > row.epoch > epoch and again.version > row.version > owner.version

    async def test_what_waits_is_started_by_no_owner_from_before(self, store: MovingBench) -> None:
        # Given items that wait in either place, others that do not, and nobody who ever owned what is due
        state, tries = store.engine, (Try(1.0, "retry", 'why, "\n'),)
        parking = LedgerEntry(0, LedgerPlace.PARKING, 1, due=1.5, fence=1, first_seen=0.5, tries=tries)
        dead, suspect = LedgerEntry(2, LedgerPlace.DEAD), LedgerEntry(3, LedgerPlace.SUSPECT, epoch=7)
        owner = await own(state)
        await state.ledger.write("s", "0", [(None, row) for row in (parking, dead, suspect)], owner.epoch)
        parked = await park(state, owner, "s", [LedgerEntry(1, LedgerPlace.PARKED, 1, 2.5, 1, 2, 3, 4, 0, 0.25)])
        long = await own(state, "ü/s")
        many = [LedgerEntry(position, LedgerPlace.PARKED, 1, 2.5, fence=1) for position in range(MANY)]
        await park(state, long, "ü/s", many)
        # When the state moves
        await store.move()
        state = store.engine
        # Then an owner of what is due of which it does not know starts none of them, whatever its clock gave it
        free = await state.ownership.read("due", "")
        assert free is not None and not free.holder and free.epoch > max(owner.epoch, long.epoch)
        found = await state.ledger.get("s", "0", range(4))
        others = await state.ledger.get("ü/s", "0", range(MANY))
        waiting = [found[0], found[1], *(others[position] for position in range(MANY))]
        assert {copy_finds(row, row.n, free.epoch - 1) for row in waiting} == {CopyVerdict.STALE}
        # And all else of the rows is as it was
        assert [row._replace(epoch=0) for row in waiting] == [parking, *parked, *many]
        assert [found[2], found[3]] == [dead, suspect]
        # And the next owner starts them
        await store.wait_out()
        heir = await state.ownership.take("due", "", "you", LEASE, free.version)
        assert heir is not None
        started = running(found[0], Due(0, 1), heir.epoch, 2)
        assert copy_finds(found[0], 1, heir.epoch) is CopyVerdict.START
        assert await state.ledger.write("s", "0", [(found[0], started)], None) == [started]

    async def test_a_state_in_which_nothing_waits_has_no_owner_of_what_is_due(self, store: MovingBench) -> None:
        await own(store.engine)
        await store.move()
        assert await store.engine.ownership.read("due", "") is None
