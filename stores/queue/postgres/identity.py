"""The identity of a server: are these the tables that handed out what is out? After a failover, a restore or a dump
that was put back they may lack claims that were made: then nothing is leased for the lease of a source.

Known by the cluster's identity, its timeline and the number of the table, which stand in `home`, and while a process
runs also by the log's position, which never goes back. A copy of the files of a server, put back under it while nobody
was connected, looks like a restart: `UPDATE tailrace.home SET known = ''` says what it was.
"""

from __future__ import annotations

import logging
import math
from typing import Any

from psycopg import AsyncConnection

from ....foundation.clock import Clock

_LOG = logging.getLogger("tailrace.stores")


class PostgresIdentity:
    """The identity of the server under a queue. `wait` is the lease of a source, seconds; `quiet_until` by the
    monotonic clock."""

    def __init__(self, schema: str, server: str, wait: float, clock: Clock) -> None:
        self._schema = schema
        self._server = server
        self._wait = wait
        self._clock = clock
        self._position = -1
        self._moved = ""
        self.timeline = ""
        self.quiet_until = -math.inf

    async def look(self, connection: AsyncConnection[tuple[Any, ...]]) -> None:
        """Looks where a new connection leads. Several may be looked at at once, and an answer may be overtaken by one
        that was given later: so it is held against what was known when it was asked for."""
        known_before = self._position
        cursor = await connection.execute(
            f"SELECT h.home, h.timeline, h.written, (SELECT known FROM {self._schema}.home)"
            f" FROM {self._schema}.this_home() AS h"
        )
        row = await cursor.fetchone()
        assert row is not None
        here, self.timeline, position, known = row
        went_back = position < min(known_before, self._position)
        self._position = position if went_back else max(self._position, position)
        if known is None:
            await connection.execute(
                f"INSERT INTO {self._schema}.home (known) VALUES (%s) ON CONFLICT DO NOTHING", (here,)
            )
        elif known != here or went_back:
            if self._moved != here or went_back:
                self.quiet_until = self._clock.monotonic() + self._wait
                _LOG.warning(
                    "%s: not the server that handed out what is out, but one that crashed, was promoted, or put back "
                    "from a copy: nothing is handed out for %.0f s (the lease of a source)",
                    self._server,
                    self._wait,
                )
            self._moved = here

    @property
    def settled_in(self) -> str:
        """What `home` is to say now that the wait is over; empty: it says so already. Not before: whoever dies in the
        wait leaves it to the next run."""
        return self._moved if self._clock.monotonic() >= self.quiet_until else ""

    def known(self) -> None:
        """`home` says it."""
        self._moved = ""
