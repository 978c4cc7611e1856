"""An application's own database with an outbox, on a simulated disk: the counterpart of `SqliteOutbox` for a real
file."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from ...model.errors import NotConnected
from ...stores.outbox.sqlite import SqliteOutbox
from .host import here
from .sqlite_disk import LOCK_WAIT

T = TypeVar("T")

#: The database's name on the disk, and that of the tailer that relays its rows.
SHOP = "shop"


class SimOutbox(SqliteOutbox):
    """The outbox in the time of the simulated host that relays it. The world may end the host just before a commit or
    just after it."""

    async def _call(self, fn: Callable[[sqlite3.Connection], T], *, make: bool = False) -> T:
        host = here()
        await asyncio.sleep(host.latency())
        kind, until = host.disk.troubles.get(SHOP, ("", 0.0))
        if host.world.now < until:
            host.world.count(f"{kind} shop")
            await asyncio.sleep(LOCK_WAIT if kind == "busy" else 0.0)
            raise NotConnected(f"{self.name}: the database is {kind}")
        connection = host.disk.connect(SHOP)
        before = connection.total_changes
        connection.execute("BEGIN")
        try:
            value = fn(connection)
            if connection.total_changes != before and host.point(f"{SHOP}: before commit"):
                connection.execute("ROLLBACK")
                return await asyncio.Event().wait()  # type: ignore[return-value] # nobody is there any more
            connection.execute("COMMIT")
        except sqlite3.Error as error:
            connection.execute("ROLLBACK")
            raise NotConnected(f"{self.name}: {error}") from None
        if connection.total_changes != before and host.point(f"{SHOP}: after commit"):
            return await asyncio.Event().wait()  # type: ignore[return-value]
        await asyncio.sleep(host.latency())
        return value


def outbox_of(options: Any) -> SimOutbox:
    """Makes a simulated outbox, in the place of the function that opens files."""
    return SimOutbox(Path(options.database.get_secret_value()), options.table)
