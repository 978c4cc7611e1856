"""The queue in a file through clocks that are set and machines that are started anew: items that were out are handed
out again in their time, and due items are due."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tailrace.model.claim import Leased, Settle, State
from tailrace.model.demand import Cell, Demand
from tailrace.model.workload import Kind
from tailrace.stores.config import StoresConfig
from tailrace.stores.queue.queue import NewItem
from tailrace.stores.queue.sqlite.queue import SCHEMA, SqliteQueue
from tailrace.stores.sqlite.file import SqliteFile
from tailrace.testing.clock import ManualClock

KIND = Kind("f", 2)
ALL = Demand({Cell("f", 2): 10}, frozenset(), 10)
LEASE = 30.0
#: The year 2090, and a moment of 1970.
WILD, DAWN = 3_800_000_000.0, 20.0


@asynccontextmanager
async def opened(
    folder: Path, clock: ManualClock, boot: str = "one", *, killed: bool = False, durability: str = "durable"
) -> AsyncIterator[SqliteQueue]:
    """The queue of one run of a node; `killed`: its files stay as they were before it closed them."""
    file = SqliteFile(folder / "queue.db", SCHEMA, name="queue")
    await file.open()
    queue = SqliteQueue(file, StoresConfig.model_validate({"durability": durability}), clock, boot=lambda: boot)
    await queue.open()
    try:
        yield queue
    finally:
        left = {path: path.read_bytes() for path in folder.glob("queue.db*") if killed and path.suffix != ".db-shm"}
        await file.close()
        for path, content in left.items():
            path.write_bytes(content)


async def taken(queue: SqliteQueue) -> Leased | None:
    return await queue.lease(ALL, LEASE, 0.0)


async def out(folder: Path, clock: ManualClock, boot: str = "one") -> Leased:
    """Returns the claim of a node that is killed then."""
    async with opened(folder, clock, boot, killed=True) as queue:
        await queue.submit([NewItem(KIND, b"out")])
        leased = await taken(queue)
        assert leased is not None
        return leased


@pytest.mark.parametrize("step", [3600.0, -3600.0, WILD - 1.7e9, DAWN - 1.7e9])
async def test_a_clock_that_is_set_while_the_store_is_down_ends_no_lease_early_or_late(
    tmp_path: Path, step: float
) -> None:
    clock = ManualClock()
    first = await out(tmp_path, clock)
    # When the clock is set while nobody looks, 10 of the 30 seconds later
    clock.advance(10.0)
    clock.jump(step)
    async with opened(tmp_path, clock) as queue:
        # Then the lease lasts the 20 seconds that are left, and no longer
        clock.advance(19.0)
        assert await taken(queue) is None
        clock.advance(2.0)
        again = await taken(queue)
        assert again is not None
        assert again.ids == first.ids
        assert again.fence > first.fence


@pytest.mark.parametrize("wall", [DAWN, 1.7e9 - 7200, 1.7e9 + 5.0, 1.7e9 + 7200, WILD])
async def test_after_the_machine_was_started_anew_what_was_out_waits_for_the_longest_lease_and_the_rest_not_at_all(
    tmp_path: Path, wall: float
) -> None:
    first = await out(tmp_path, ManualClock())
    # When it is up again with any clock, and that one is set right a moment later
    clock = ManualClock(wall=wall, monotonic=3.0)
    async with opened(tmp_path, clock, "two", killed=True) as queue:
        ((fresh, _),) = await queue.submit([NewItem(KIND, b"fresh")])
        new = await taken(queue)
        assert new is not None
        assert new.ids == [fresh]
        await queue.settle(new.fence, [fresh], [])
        clock.advance(10.0)
        clock.jump(1.7e9 + 60.0 - clock.wall())
        # Then what was out is handed out again after the longest lease
        clock.advance(LEASE - 11.0)
        assert await taken(queue) is None
        clock.advance(2.0)
        again = await taken(queue)
        assert again is not None
        assert again.ids == first.ids
        assert again.fence > new.fence > first.fence


async def test_a_clean_stop_and_a_new_boot_cost_nothing(tmp_path: Path) -> None:
    async with opened(tmp_path, ManualClock()) as queue:
        await queue.submit([NewItem(KIND, b"one")])
        leased = await taken(queue)
        assert leased is not None
        await queue.settle(leased.fence, [], [Settle(leased.ids[0], leased.fence, State.NEW)])
    async with opened(tmp_path, ManualClock(monotonic=1.0), "two") as queue:
        assert await taken(queue) is not None


async def test_where_not_every_write_is_synced_a_machine_that_went_down_holds_everything_for_the_longest_lease(
    tmp_path: Path,
) -> None:
    # Given a store whose last claims may be lost with the power
    async with opened(tmp_path, ManualClock(), killed=True, durability="relaxed") as queue:
        await queue.submit([NewItem(KIND, b"one"), NewItem(KIND, b"two")])
        assert await queue.lease(Demand({Cell("f", 2): 1}, frozenset(), 1), LEASE, 0.0) is not None
    clock = ManualClock(monotonic=1.0)
    async with opened(tmp_path, clock, "two", durability="relaxed") as queue:
        assert await taken(queue) is None
        clock.advance(LEASE + 1.0)
        assert await taken(queue) is not None


async def test_what_was_submitted_while_the_clock_was_beyond_its_end_runs_when_it_is_right_again(
    tmp_path: Path,
) -> None:
    clock = ManualClock()
    async with opened(tmp_path, clock) as queue:
        soon = clock.wall() + 3600.0
        ((later, _),) = await queue.submit([NewItem(KIND, b"later", due=soon)])
        # When the clock is in 2090 for a moment, in which one is submitted, and one with a delay
        clock.jump(WILD - clock.wall())
        ((wild, _),) = await queue.submit([NewItem(KIND, b"wild")])
        ((delayed, _),) = await queue.submit([NewItem(KIND, b"delayed", due=clock.wall() + 60.0)])
        assert await queue.sweep() == 0  # the store looks at its clock now and then, whoever leases
        clock.jump(1.7e9 + 1.0 - clock.wall())
        ((after, _),) = await queue.submit([NewItem(KIND, b"after")])
        # Then all that is due is handed out at once, and the rest in its time
        leased = await taken(queue)
        assert leased is not None
        assert {later, wild, after} == set(leased.ids)  # by that clock the first was due, and what was due stays so
        await queue.settle(leased.fence, leased.ids, [])
        clock.advance(59.0)
        assert await taken(queue) is None
        clock.advance(2.0)
        leased = await taken(queue)
        assert leased is not None
        assert leased.ids == [delayed]
        (status,) = await queue.status([wild])
        assert status is not None
        assert status.created_at <= clock.wall()


async def test_what_was_submitted_before_a_boot_by_a_clock_that_was_ahead_runs_after_it(tmp_path: Path) -> None:
    clock = ManualClock(wall=WILD)
    async with opened(tmp_path, clock, killed=True) as queue:
        ((wild, _),) = await queue.submit([NewItem(KIND, b"wild")])
        await queue.sweep()
    async with opened(tmp_path, ManualClock(monotonic=1.0), "two") as queue:
        leased = await taken(queue)
        assert leased is not None
        assert leased.ids == [wild]


async def test_a_short_step_back_makes_nothing_due_that_was_to_wait(tmp_path: Path) -> None:
    clock = ManualClock()
    async with opened(tmp_path, clock) as queue:
        await queue.submit([NewItem(KIND, b"later", due=clock.wall() + 3600.0)])
        clock.jump(-60.0)
        assert await taken(queue) is None
        clock.advance(3590.0)
        assert await taken(queue) is None
        clock.advance(71.0)
        assert await taken(queue) is not None


async def test_clocks_that_part_slowly_make_nothing_due_early(tmp_path: Path) -> None:
    """Given a machine whose two clocks part by half a second in a minute, five seconds in all."""
    clock = ManualClock()
    async with opened(tmp_path, clock) as queue:
        await queue.submit([NewItem(KIND, b"later", due=clock.wall() + 600.9)])
        for _ in range(10):
            clock.advance(60.5)
            clock.jump(-0.5)
            assert await taken(queue) is None
        # Then it is due when the wall clock says so, also to a run that comes after
    async with opened(tmp_path, clock) as queue:
        assert await taken(queue) is None
        clock.advance(1.0)
        assert await taken(queue) is not None


async def test_ended_items_that_were_made_by_a_clock_that_was_ahead_are_forgotten_in_their_time(tmp_path: Path) -> None:
    clock = ManualClock(wall=WILD)
    async with opened(tmp_path, clock) as queue:
        ((made, _),) = await queue.submit([NewItem(KIND, b"")])
        clock.jump(1.7e9 - clock.wall())
        leased = await taken(queue)
        assert leased is not None
        await queue.settle(leased.fence, [made], [])
        clock.advance(8 * 86_400.0)
        assert await queue.sweep() == 1
