"""Files as they were at a start whose store was away are not applied over their content by the time it is back."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, cast

import pytest

from tailrace.foundation.duties import Duties
from tailrace.gateway import control, schedule_desk
from tailrace.gateway.config import GatewayConfig
from tailrace.gateway.control import ControlDesk
from tailrace.gateway.known_functions import KnownFunctions
from tailrace.gateway.schedule_desk import ScheduleDesk
from tailrace.model.errors import Unavailable
from tailrace.model.function_spec import FunctionSpec
from tailrace.model.limits import Quota, QuotaChange, Snapshot
from tailrace.model.schedule import Origin, Schedule, ScheduleRow
from tailrace.testing.clock import ManualClock


class Store:
    """Quotas and schedules in a store that may be away."""

    def __init__(self) -> None:
        self.away = True
        self.kept = Snapshot()
        self.rows: dict[str, ScheduleRow] = {}
        self.asked, self.followed = asyncio.Event(), asyncio.Event()

    def _answer(self) -> None:
        self.asked.set()
        if self.away:
            raise Unavailable("planted")

    async def snapshot(self) -> Snapshot:
        self._answer()
        return self.kept

    async def put_quotas(self, change: QuotaChange, expected: int) -> int:
        self._answer()
        if expected != self.kept.quotas_version:
            return 0
        version = self.kept.version + 1
        self.kept = Snapshot(version, quotas=list(change.quotas), quotas_version=version)
        return version

    async def wait(self, version: int, timeout: float) -> Snapshot | None:
        self.followed.set()
        await asyncio.Event().wait()
        return None

    async def list(self, limit: int) -> list[ScheduleRow]:
        self._answer()
        return [*self.rows.values()]

    async def put(self, row: ScheduleRow, expected: int) -> ScheduleRow | None:
        self._answer()
        self.rows[row.schedule.name] = row
        return row

    async def remove(self, name: str) -> bool:
        self._answer()
        return self.rows.pop(name, None) is not None


class Spool:
    """Remembers one function."""

    async def functions(self) -> list[FunctionSpec]:
        return [FunctionSpec("mail")]

    async def remember(self, functions: Sequence[FunctionSpec]) -> None:
        """Remembers nothing: nobody asks for it again."""


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control, "PAUSE", 0)
    monkeypatch.setattr(schedule_desk, "PAUSE", 0)


async def test_quotas_of_the_start_are_not_applied_over_those_of_a_reload() -> None:
    # Given a gateway that started while its store was away
    store, before, now = Store(), [Quota("mail", rate=5.0)], [Quota("mail", rate=7.0)]
    duties = Duties("gateway")
    desk = ControlDesk(cast(Any, store), KnownFunctions(), ManualClock(), 1, Spool(), duties)
    assert not await desk.start(before)
    # When the store is back, and the files were changed and are the first to be applied
    store.away = False
    await desk.declare(before, now)
    # Then the gateway, once it follows the store, left them as they are
    await store.followed.wait()
    assert store.kept.quotas == now
    await desk.stop()
    await duties.end()


async def test_quotas_of_a_reload_that_failed_are_not_applied_behind_it() -> None:
    store, before = Store(), [Quota("mail", rate=5.0)]
    duties = Duties("gateway")
    desk = ControlDesk(cast(Any, store), KnownFunctions(), ManualClock(), 1, Spool(), duties)
    assert not await desk.start(before)
    # Given a reload that was told that nothing of it is in force
    with pytest.raises(Unavailable):
        await desk.declare(before, [Quota("mail", rate=7.0)])
    # When the store is back, then what is in force is what was
    store.away = False
    await store.followed.wait()
    assert store.kept.quotas == before
    await desk.stop()
    await duties.end()


async def test_schedules_of_the_start_are_not_applied_over_those_of_a_reload() -> None:
    # Given a gateway that started while its store was away
    store, duties = Store(), Duties("gateway")
    desk = ScheduleDesk(GatewayConfig(), cast(Any, store), KnownFunctions(), ManualClock(), duties)
    nightly, hourly = (Schedule(name, "mail", every=3600.0, origin=Origin.FILE) for name in ("nightly", "hourly"))
    await desk.start([nightly], wait=False)
    await store.asked.wait()
    # When the store is back, and a file with another schedule is the first to be applied
    store.away = False
    await desk.start([hourly])
    # Then nothing of the start waits any more, and it is the one that there is
    assert [*store.rows] == ["hourly"]
    assert not duties._tasks
    await desk.stop()
    await duties.end()
