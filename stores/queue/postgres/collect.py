"""Collection of the schema's outbox: rows that other applications' transactions left there become items of the queue,
once those transactions have committed."""

from __future__ import annotations

import logging
from collections.abc import Callable

from ...config import StoresConfig
from ...postgres.run_statement import RunStatement
from . import statements as call

#: Most rows that one transaction moves.
MOST = 1000

_LOG = logging.getLogger("tailrace.stores")


class PostgresCollecting:
    """The collector of the schema's outbox (stores/postgres/migrations/0003_outbox.sql). `rows` runs a statement;
    `time` returns µs, or None for the server's clock."""

    def __init__(self, rows: RunStatement, time: Callable[[], int | None], config: StoresConfig) -> None:
        self._rows = rows
        self._time = time
        self._bounds = (MOST, config.max_payload, config.max_waiting)

    async def collect(self) -> int:
        """Moves the rows that are there, up to a bound; returns how many. With none this is one look, which writes
        nothing."""
        [(moved, troubles)] = await self._rows(call.COLLECT, (self._time(), *self._bounds), "the outbox")
        if troubles:
            _LOG.warning("the outbox: %s", troubles)
        return int(moved)
