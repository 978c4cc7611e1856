"""The identity of a server: tells whether its tables are the ones that granted the leases. After a failover, a restore
or a dump that was put back, claims may be missing in them: then nothing is leased for the lease of a source.

A server is known by the cluster's identity, its timeline and the number of the table, which are stored in `home`; and
while a process runs also by the log's position, which never goes back. A copy of a server's files, put back while
nobody was connected, looks like a restart: an operator who does that tells the queue by `UPDATE tailrace.home SET known
= ''`.
"""

from __future__ import annotations

import logging
import math
from typing import Any

from psycopg import AsyncConnection

from ....foundation.clock import Clock

_LOG = logging.getLogger("tailrace.stores")


class PostgresIdentity:
    """The identity of the server under a queue. `wait`: the lease of a source, seconds. `quiet_until`: nothing is
    leased before this time of the monotonic clock."""

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
        """Checks the server of a new connection. Several checks may run at once, and a later answer may arrive first,
        so each answer is compared with the position that was known when it was asked for."""
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
                    "%s: this server did not grant the current leases: it crashed, was promoted, or was put back from "
                    "a copy; nothing is handed out for %.0f s (the lease of a source)",
                    self._server,
                    self._wait,
                )
            self._moved = here

    @property
    def settled_in(self) -> str:
        """The new text for `home`, once the wait is over; empty: `home` has it already. It is not written before, so
        that after a death during the wait the next run waits too."""
        return self._moved if self._clock.monotonic() >= self.quiet_until else ""

    def known(self) -> None:
        """Notes that `home` has the new text."""
        self._moved = ""
