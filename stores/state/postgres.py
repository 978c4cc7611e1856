"""The state on PostgreSQL: a pool of connections to one schema, and a store of each kind over it.

Any number of nodes may use one. The schema itself defines what a failover or a restore means for owners
(stores/postgres/migrations/0002_state.sql): each new connection checks which server it leads to. On another server than
before all epochs rise before anything is written, and no stream is given away for the lease of a source.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from psycopg import AsyncConnection

from ...foundation.clock import SYSTEM_CLOCK, Clock
from ...model.errors import Unavailable
from ..checkpoints.postgres import PostgresCheckpoints
from ..config import StoresConfig
from ..control.postgres import PostgresControl
from ..dead_letters.postgres import PostgresDeadLetters
from ..drops.postgres import PostgresDrops
from ..inventory.postgres import PostgresInventory
from ..ledger.postgres import PostgresLedger
from ..ownership.postgres import PostgresOwnership
from ..postgres.crash import look_for_a_crash
from ..postgres.fleet import refuse_another_fleet
from ..postgres.hints import PostgresHints
from ..postgres.migrations.migrate import require
from ..postgres.schema import PostgresSchema
from ..postgres.server import PostgresOptions, PostgresServer, refuse_unsafe
from ..postgres.standbys import tell_of_promotion
from ..postgres.watch import ChangeWatch
from ..replays.postgres import PostgresReplays
from ..results.postgres import PostgresResults
from ..schedules.postgres import PostgresSchedules
from ..segments.postgres import PostgresSegments
from ..trusted_time import TrustedTime, server_time
from ..usage.postgres import PostgresUsage
from .engines import StateEngine
from .state import StateStores

_LOG = logging.getLogger("tailrace.stores")

_BIND = "SELECT whose FROM S.bind_log(%s, %s) AS whose"
_REBIND = (
    "WITH moved AS (UPDATE S.bound SET node = %s WHERE what = %s AND node = %s RETURNING node)"
    " SELECT coalesce((SELECT node FROM moved), b.node) FROM S.bound AS b WHERE b.what = %s"
)


class PostgresGround:
    """The base of a state on PostgreSQL: the server, and all that its stores share. `wait`: the lease of a source,
    seconds; `fleet`: the fleet of this process, empty where it has none."""

    def __init__(
        self, options: PostgresOptions, config: StoresConfig, clock: Clock, wait: float, fleet: str = ""
    ) -> None:
        durable = config.durability == "durable"
        self._server = PostgresServer(options, self._prepare)
        self._durable = durable
        self._wait = int(wait * 1e6)
        self._fleet = fleet
        self._checked = False
        self._written = -1  # position in the server's write-ahead log at the last look
        self.schema = PostgresSchema(self._server, relaxed=not durable)
        self.watch = ChangeWatch()
        self._hints = PostgresHints(options, self.schema.read, self.watch.wake, "state")
        self.owners = PostgresOwnership(self.schema, clock)
        self.sweepers: list[PostgresResults] = []

    async def open(self) -> None:
        self._server.open()
        self._hints.open()
        try:
            await self.schema.read("SELECT 1", (), "a look at it")
        except Unavailable as error:
            _LOG.warning("%s; trying again at each use", error)

    async def _prepare(self, connection: AsyncConnection[tuple[Any, ...]], bound: asyncio.Timeout) -> None:
        name, schema = self._server.name, self._server.options.db_schema
        await refuse_unsafe(connection, name, durable=self._durable)
        if not self._checked:
            await require(connection, schema, bound)
            await refuse_another_fleet(connection, schema, f"the state on {name}", self._fleet)
            await tell_of_promotion(connection, f"the state on {name}", durable=self._durable)
            self._checked = True
        if not self._durable:
            await look_for_a_crash(connection, schema, name)
        cursor = await connection.execute(
            f"SELECT moved, written FROM {schema}.arrive(%s::bigint, %s::bigint)".encode(), (self._wait, self._written)
        )
        row = await cursor.fetchone()
        assert row is not None
        moved, self._written = row
        if moved:
            _LOG.warning(
                "%s: not the server that gave streams to their owners, but one that crashed, was promoted, or put back "
                "from a copy: no stream is taken for %.0f s (the lease of a source)",
                name,
                self._wait / 1e6,
            )

    def changed(self) -> None:
        """Wakes waiters here and in other nodes: something was changed here."""
        self.watch.wake()
        self._hints.tell()

    async def rebind(self, what: str, seen: str, text: str) -> str:
        values = (what, text) if not seen else (text, what, seen, what)
        [(there,)] = await self.schema.write(_REBIND if seen else _BIND, values, "a log")
        return str(there)

    def stay_quiet(self, until: float) -> None:
        self.owners.quiet_until = until

    async def sweep(self) -> int:
        gone = 0
        for store in self.sweepers:
            try:
                gone += await store.sweep()
            except Unavailable as error:
                _LOG.warning("%s; sweeping again later", error)
        return gone

    async def close(self) -> None:
        await self._hints.close()
        await self._server.close()


def postgres_state(
    options: PostgresOptions,
    config: StoresConfig | None = None,
    clock: Clock = SYSTEM_CLOCK,
    *,
    wait: float = 40.0,
    fleet: str = "",
    store_time: Callable[[], int | None] = lambda: None,
    times: dict[str, TrustedTime] | None = None,
) -> StateStores:
    """The state in a schema. `store_time` is for tests: µs instead of the server's clock, for the age of results."""
    config = config or StoresConfig()
    return stores_on(PostgresGround(options, config, clock, wait, fleet), config, clock, store_time, times)


def stores_on(
    ground: PostgresGround,
    config: StoresConfig,
    clock: Clock,
    store_time: Callable[[], int | None] = lambda: None,
    times: dict[str, TrustedTime] | None = None,
) -> StateStores:
    """A store of each kind over one base. Anything that a store remembers of the schema is its own, not the base's."""
    schema = ground.schema
    results = PostgresResults(
        schema,
        retention=config.result_retention,
        max_bytes=config.result_bytes,
        store_time=store_time,
        trusted=server_time(clock, times, "PostgreSQL server of the state"),
    )
    ground.sweepers = [results]
    return StateStores(
        ground=ground,
        checkpoints=PostgresCheckpoints(schema),
        control=PostgresControl(schema, ground.watch, ground.changed, clock),
        dead_letters=PostgresDeadLetters(schema, config.max_dead_letters),
        drops=PostgresDrops(schema),
        inventory=PostgresInventory(schema),
        ledger=PostgresLedger(schema),
        ownership=ground.owners,
        replays=PostgresReplays(schema),
        results=results,
        schedules=PostgresSchedules(schema, ground.watch, ground.changed),
        segments=PostgresSegments(schema),
        usage=PostgresUsage(schema),
    )


ENGINE = StateEngine("postgres", PostgresOptions, postgres_state)
