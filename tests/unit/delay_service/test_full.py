"""A delay service that is full: new items are refused, items that are here already and failed again are not, or nothing
would ever leave it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tailrace.delay_service.config import DelayConfig
from tailrace.delay_service.service import DelayService
from tailrace.model.errors import Overloaded
from tailrace.model.parked import Parked
from tailrace.model.workload import Kind
from tailrace.stores.log import sqlite as log_sqlite
from tailrace.stores.log.sqlite import SqliteLog
from tailrace.stores.sqlite.file import SqliteFile
from tailrace.testing.clock import ManualClock


@pytest.mark.parametrize(("config", "says"), [({"max_items": 4}, "max_items"), ({"max_bytes": 400}, "max_bytes")])
async def test_what_came_due_and_failed_is_parked_again_in_a_full_service(
    tmp_path: Path, config: dict[str, int], says: str
) -> None:
    # Given a service that is full
    clock = ManualClock()
    file = SqliteFile(tmp_path / "log.db", log_sqlite.SCHEMA, name="log", synchronous="OFF")
    await file.open()
    log = SqliteLog(file, clock)
    await log.open()
    service = DelayService(log, DelayConfig.model_validate(config), clock)

    def parked(name: str, n: int) -> Parked:
        return Parked("t", name, Kind("f"), b"x" * 100, clock.wall() + 5.0, clock.wall(), n=n)

    await service.park([parked(f"a{number}", 1) for number in range(4)])
    # When items are parked again that it had, it takes them; what is new it does not, in the same call or alone
    await service.park([parked(f"a{number}", 2) for number in range(2)])
    with pytest.raises(Overloaded, match=says):
        await service.park([parked("b", 1)])
    with pytest.raises(Overloaded, match=says):
        await service.park([parked("a2", 2), parked("b", 1)])
    # Then it takes new ones again when enough of them are done
    await log.trim("delay.5s", 0, 3)
    clock.advance(1.0)
    await service.park([parked("a2", 2)])
    with pytest.raises(Overloaded, match=says):
        await service.park([parked("b", 1)])
    await log.trim("delay.5s", 0, 5)
    clock.advance(1.0)
    await service.park([parked("b", 1), parked("c", 1)])
    await file.close()
