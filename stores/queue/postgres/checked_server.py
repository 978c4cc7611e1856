"""The server of a queue on PostgreSQL: it, its schema and both clocks are checked with each new connection."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from psycopg import AsyncConnection

from ....foundation.clock import Clock
from ...config import StoresConfig
from ...postgres.commits import confirmed, relaxed
from ...postgres.crash import look_for_a_crash
from ...postgres.fleet import refuse_another_fleet
from ...postgres.migrations.migrate import require
from ...postgres.server import PostgresServer, refuse_unsafe
from ...postgres.standbys import tell_of_promotion
from ..server_clock import ServerClock
from .identity import PostgresIdentity
from .kinds import PostgresKinds
from .options import PostgresQueueOptions


class CheckedPostgres:
    """A server that is checked with each new connection. `time` returns µs to use instead of the server's clock, or
    None. `fleet`: the fleet of this process; empty: none."""

    def __init__(
        self,
        options: PostgresQueueOptions,
        config: StoresConfig,
        wait: float,
        clock: Clock,
        time: Callable[[], int | None],
        fleet: str = "",
    ) -> None:
        self.server = PostgresServer(options, self._prepare)
        self.home = PostgresIdentity(options.db_schema, options.server, wait, clock)
        self.kinds = PostgresKinds(self.read)
        self.clock, self.server_clock = clock, ServerClock(options.server, wait, clock)
        self.time = time
        self._schema = options.db_schema
        self._shared_keys = config.shared_keys
        self._relaxed = config.durability == "relaxed"
        self._fleet = fleet
        self._checked = False

    async def rows(self, statement: str, arguments: Sequence[Any] = (), about: str = "") -> list[tuple[Any, ...]]:
        """Runs one statement, with S. for the schema. With relaxed durability it does not wait for the commit to be on
        disk."""
        return await self.read(relaxed(statement) if self._relaxed else statement, arguments, about)

    async def write(self, statement: str, arguments: Sequence[Any], about: str) -> list[tuple[Any, ...]]:
        """Runs one statement whose caller lets go of something when it is confirmed, also by a repeat."""
        return await self.rows(statement if self._relaxed else confirmed(statement), arguments, about)

    async def read(self, statement: str, arguments: Sequence[Any], about: str) -> list[tuple[Any, ...]]:
        """Runs one statement that writes nothing."""
        return await self.server.rows(statement, arguments, about, self._schema)

    async def _prepare(self, connection: AsyncConnection[tuple[Any, ...]], bound: asyncio.Timeout) -> None:
        await refuse_unsafe(connection, self.server.name, durable=not self._relaxed)
        if not self._checked:
            await require(connection, self._schema, bound)
            await refuse_another_fleet(connection, self._schema, f"the queue on {self.server.name}", self._fleet)
            await tell_of_promotion(connection, f"the queue on {self.server.name}", durable=not self._relaxed)
            await self._agree_on_keys(connection)
            self._checked = True
        if self._relaxed:
            await look_for_a_crash(connection, self._schema, self.server.name)
        await self.home.look(connection)

    async def _agree_on_keys(self, connection: AsyncConnection[tuple[Any, ...]]) -> None:
        """Tells the schema whether tenants share their keys."""
        await connection.execute(f'SELECT "{self._schema}".share_keys(%s)', (self._shared_keys,))
