"""Collection of the schema's outbox: what other people's transactions enqueued becomes items of the queue, once those
have committed."""

from __future__ import annotations

import logging
from collections.abc import Callable

from ...config import StoresConfig
from ...postgres.run_statement import RunStatement
from . import statements as call

#: Rows that one transaction moves.
MOST = 1000

_LOG = logging.getLogger("tailrace.stores")


class PostgresCollecting:
    """Moves rows of the schema's outbox (stores/postgres/migrations/0003_outbox.sql). `rows` runs a statement; `time`
    is µs, or None for the server's clock."""

    def __init__(self, rows: RunStatement, time: Callable[[], int | None], config: StoresConfig) -> None:
        self._rows = rows
        self._time = time
        self._bounds = (MOST, config.max_payload, config.max_waiting)

    async def collect(self) -> int:
        """Moves what is there, a bounded part of it; how many rows. With none it is one look, which writes nothing."""
        [(moved, troubles)] = await self._rows(call.COLLECT, (self._time(), *self._bounds), "the outbox")
        if troubles:
            _LOG.warning("the outbox: %s", troubles)
        return int(moved)
