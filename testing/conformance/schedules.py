"""The laws that every store of schedules obeys."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from ...model.schedule import CatchUp, Firing, Origin, Overlap, Schedule, ScheduleRow
from ...stores.schedules.schedules import DueSchedules, RunBounds, Schedules
from .bench import MOMENT, SOON, StoreBench, StoreLaws

NOW = 1_700_000_000.125
WHOLE = Schedule(
    "nightly/é",
    "make:report",
    b"\x00\xff payload",
    cron="0 3 * * *",
    timezone="Europe/Berlin",
    priority="eventual",
    collection="c",
    tenant="t",
    overlap=Overlap.QUEUE,
    catch_up=CatchUp.ALL,
    catch_up_max=7,
    grace=5.5,
    jitter=12.25,
    starts=NOW,
    until=NOW + 1e9,
    max_runs=99,
    created_by="ann@host",
    created_at=NOW,
    origin=Origin.FILE,
)
SMALL = Schedule("s", "f", every=10.0, created_at=NOW)


async def kept(store: StoreBench[Schedules], schedule: Schedule = SMALL, next_at: float = NOW + 10) -> ScheduleRow:
    row = await store.engine.put(ScheduleRow(schedule, decided=NOW, next_at=next_at), 0)
    assert row is not None
    return row


def fires(*instants: float, next_at: float = 0.0, passed_over: int = 0) -> Firing:
    return Firing(instants, instants[-1], passed_over, next_at or instants[-1] + 10)


class ScheduleLaws(StoreLaws[Schedules]):
    """Laws of schedules: versions and positions are given once; an instant of a schedule has one run."""

    async def test_a_schedule_comes_back_whole(self, store: StoreBench[Schedules]) -> None:
        row = await store.engine.put(ScheduleRow(WHOLE, 0, True, NOW, 3, 4, NOW + 5), 0)
        assert row is not None and row.version > 0
        for _ in range(2):
            assert row == ScheduleRow(WHOLE, row.version, True, NOW, 3, 4, NOW + 5)
            assert await store.engine.get(WHOLE.name) == row
            assert await store.engine.list(10) == [row]
            await store.reopen()
        assert await store.engine.get("another") is None

    async def test_who_changes_what_another_one_changed_changes_nothing(self, store: StoreBench[Schedules]) -> None:
        first = await kept(store)
        assert await store.engine.put(ScheduleRow(SMALL), 0) is None
        second = await store.engine.put(first._replace(schedule=replace(SMALL, function="g")), first.version)
        assert second is not None and second.version > first.version
        assert await store.engine.put(first, first.version) is None
        assert await store.engine.get("s") == second
        assert await store.engine.remove("s") and not await store.engine.remove("s")
        again = await store.engine.put(ScheduleRow(SMALL), 0)
        assert again is not None and again.version > second.version

    async def test_what_is_due_comes_earliest_first_and_the_rest_says_when(self, store: StoreBench[Schedules]) -> None:
        for name, at in (("late", 3.0), ("early", 1.0), ("never", 0.0), ("later", 9.0)):
            await kept(store, replace(SMALL, name=name), NOW + at if at else 0.0)
        assert await store.engine.due(NOW, 9) == DueSchedules([], NOW + 1)
        found = await store.engine.due(NOW + 3, 9)
        assert ([row.schedule.name for row in found.rows], found.next_at) == (["early", "late"], NOW + 9)
        assert len((await store.engine.due(NOW + 3, 1)).rows) == 1
        assert (await store.engine.due(NOW + 9, 9)).next_at == 0

    async def test_runs_are_dense_and_keep_what_their_schedule_said(self, store: StoreBench[Schedules]) -> None:
        assert await store.engine.bounds() == RunBounds(0, 0)
        one = await kept(store)
        assert await store.engine.fire("s", one.version, NOW, fires(NOW + 10, NOW + 20), NOW + 20)
        fired = await store.engine.get("s")
        assert fired == one._replace(decided=NOW + 20, runs=2, next_at=NOW + 30)
        other = replace(SMALL, payload=b"new")
        two = await store.engine.put(fired._replace(schedule=other), one.version)
        assert two is not None
        by_hand = await store.engine.run("s", NOW + 21, NOW + 21.5)
        assert by_hand is not None and by_hand.by_hand and await store.engine.get("s") == two
        assert await store.engine.run("none", NOW, NOW) is None
        assert await store.engine.remove("s")
        await store.reopen()
        found = await store.engine.read(0, 10, 1 << 20)
        assert [(run.position, run.instant, run.fired_at) for run in found.runs] == [
            (0, NOW + 10, NOW + 20),
            (1, NOW + 20, NOW + 20),
            (2, NOW + 21, NOW + 21.5),
        ]
        assert found.runs[2] == by_hand
        assert [found.schedules[run.version] for run in found.runs] == [SMALL, SMALL, other]
        assert await store.engine.bounds() == RunBounds(0, 3)
        assert await store.engine.last("s", 2) == found.runs[:0:-1]
        assert (await store.engine.read(1, 1, 1 << 20)).runs == found.runs[1:2]
        assert (await store.engine.read(3, 9, 1 << 20)).runs == []

    async def test_a_read_is_bounded_by_bytes_and_has_one_at_least(self, store: StoreBench[Schedules]) -> None:
        row = await kept(store, replace(SMALL, payload=bytes(1000)))
        assert await store.engine.fire("s", row.version, NOW, fires(NOW + 1, NOW + 2, NOW + 3), NOW + 3)
        assert len((await store.engine.read(0, 9, 2500)).runs) == 2
        assert len((await store.engine.read(0, 9, 1)).runs) == 1

    async def test_of_any_number_that_fire_one_is_heard(self, store: StoreBench[Schedules]) -> None:
        row = await kept(store)
        tries = [store.engine.fire("s", row.version, NOW, fires(NOW + 10), NOW + 10 + n) for n in range(20)]
        assert sorted(await asyncio.gather(*tries)) == [False] * 19 + [True]
        assert not await store.engine.fire("s", row.version + 1, NOW + 10, fires(NOW + 20), NOW + 20)
        assert not await store.engine.fire("other", row.version, NOW + 10, fires(NOW + 20), NOW + 20)
        assert await store.engine.fire("s", row.version, NOW + 10, fires(NOW + 20, passed_over=3), NOW + 20)
        after = await store.engine.get("s")
        assert after is not None and (after.runs, after.passed_over, after.decided) == (2, 3, NOW + 20)
        assert await store.engine.bounds() == RunBounds(0, 2)

    async def test_one_made_again_does_not_run_an_instant_again(self, store: StoreBench[Schedules]) -> None:
        for _ in range(2):
            row = await kept(store)
            assert await store.engine.fire("s", row.version, NOW, fires(NOW + 10), NOW + 10)
            assert await store.engine.remove("s")
        assert await store.engine.bounds() == RunBounds(0, 1)
        row = await kept(store)
        assert await store.engine.run("s", NOW + 10, NOW + 11) is None

    async def test_only_what_the_checkpoint_passed_is_forgotten(self, store: StoreBench[Schedules]) -> None:
        row = await kept(store)
        for n in range(1, 5):
            at = NOW + 10 * n
            assert await store.engine.fire("s", row.version, at - 10, fires(at, next_at=at + 10), at)
        assert await store.engine.trim(3, NOW + 25) == 2
        assert await store.engine.bounds() == RunBounds(2, 4)
        assert await store.engine.trim(0, NOW + 1e6) == 0
        assert await store.engine.trim(4, NOW + 1e6) == 2
        await store.reopen()
        assert await store.engine.bounds() == RunBounds(4, 4)
        assert await store.engine.get("s") is not None

    async def test_what_is_over_is_forgotten_unless_a_file_keeps_it(self, store: StoreBench[Schedules]) -> None:
        await kept(store, replace(SMALL, name="over"), 0.0)
        await kept(store, replace(SMALL, name="file", origin=Origin.FILE), 0.0)
        await kept(store, replace(SMALL, name="going"))
        await store.engine.put(ScheduleRow(replace(SMALL, name="paused"), 0, True, NOW), 0)
        await store.engine.trim(0, NOW)
        assert len(await store.engine.list(9)) == 4
        await store.engine.trim(0, NOW + 1)
        assert [row.schedule.name for row in await store.engine.list(9)] == ["file", "going", "paused"]

    async def test_who_waits_is_woken_by_a_run(self, store: StoreBench[Schedules]) -> None:
        row = await kept(store)
        assert await store.engine.wait(0, MOMENT) == 0
        waiting = asyncio.create_task(store.engine.wait(0, SOON))
        await asyncio.sleep(MOMENT)
        assert await store.engine.fire("s", row.version, NOW, fires(NOW + 10), NOW + 10)
        assert await waiting == 1
        assert await store.engine.wait(0, SOON) == 1
