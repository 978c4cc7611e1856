"""Ownership in PostgreSQL: one row per source and partition, each method one call of a function of the schema
(stores/postgres/migrations/0002_state.sql).

Versions are max(old + 1, microseconds since 1970) and epochs max(old + 1, seconds since 2020), both by the server's
clock. On a server that was promoted or put back from a copy the schema itself refuses to give a stream away for the
lease of a source.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Sequence

from ...foundation.clock import SYSTEM_CLOCK, Clock
from ...model.errors import InvalidRequest, StaleFence, Unavailable
from ..postgres.arrays import texts
from ..postgres.schema import PostgresSchema
from .ownership import OwnedRow, Owner

_TAKE = "SELECT quiet, version, epoch FROM S.ownership_take(%s, %s, %s, %s::float8, %s::bigint, %s::text[])"
_RENEW = (
    "SELECT renewed, version, epoch, holder, lease FROM S.ownership_renew(%s, %s, %s::bigint, %s::text[], %s::bigint)"
)
_RELEASE = "SELECT epoch FROM S.ownership_release(%s, %s, %s::bigint) AS epoch"
_COLUMNS = "version, epoch, holder, lease, schedulers"


class PostgresOwnership:
    """Ownership in one schema."""

    def __init__(self, schema: PostgresSchema, clock: Clock = SYSTEM_CLOCK) -> None:
        self._schema = schema
        self._clock = clock
        self.quiet_until = -math.inf  # by the monotonic clock; until then this process takes no stream

    async def read(self, source: str, partition: str) -> Owner | None:
        rows = await self._schema.read(
            f"SELECT {_COLUMNS} FROM S.ownership WHERE source = %s AND partition = %s", (source, partition), "an owner"
        )
        return _owner(rows[0]) if rows else None

    async def take(
        self, source: str, partition: str, holder: str, lease: float, seen: int, schedulers: Sequence[str] = ()
    ) -> Owner | None:
        if not holder:
            raise InvalidRequest(f"source {source!r}: an owner needs a name")
        if not (math.isfinite(lease) and lease > 0):
            raise InvalidRequest(f"source {source!r}: a lease of {lease} seconds: expected a positive number")
        quiet = self.quiet_until - self._clock.monotonic()
        if quiet > 0:
            raise _quiet(quiet)
        listed = list(schedulers)
        rows = await self._schema.write(_TAKE, (source, partition, holder, lease, seen, texts(listed)), "a take-over")
        if not rows:
            return None
        [(micros, version, epoch)] = rows
        if micros:
            raise _quiet(micros / 1e6)
        return Owner(version, epoch, holder, lease, tuple(schedulers))

    async def renew(
        self, source: str, partition: str, epoch: int, schedulers: Sequence[str], seen: int = 0
    ) -> Owner | None:
        asked = (source, partition, epoch, texts(list(schedulers)), seen)
        rows = await self._schema.write(_RENEW, asked, "a renewal")
        if not rows:
            raise _stale(source, epoch, None)
        [(renewed, version, newest, holder, lease)] = rows
        if newest != epoch:
            raise _stale(source, epoch, newest)
        if not renewed and holder:
            return None
        if not renewed:
            raise StaleFence(f"source {source!r}: epoch {epoch} was released; nothing was written")
        return Owner(version, epoch, holder, lease, tuple(schedulers))

    async def release(self, source: str, partition: str, epoch: int) -> None:
        [(newest,)] = await self._schema.write(_RELEASE, (source, partition, epoch), "a release")
        if newest != epoch:
            raise _stale(source, epoch, newest)

    async def list(self, limit: int, after: tuple[str, str] = ("", "")) -> builtins.list[OwnedRow]:
        rows = await self._schema.read(
            f"SELECT source, partition, {_COLUMNS} FROM S.ownership WHERE (source, partition) > (%s, %s)"
            " ORDER BY source, partition LIMIT %s",
            (*after, limit),
            "the owners",
        )
        return [OwnedRow(source, partition, _owner(rest)) for source, partition, *rest in rows]


def _owner(row: Sequence[object]) -> Owner:
    version, epoch, holder, lease, schedulers = row
    return Owner(version, epoch, holder, lease, tuple(schedulers))  # type: ignore[arg-type]


def _quiet(seconds: float) -> Unavailable:
    return Unavailable(f"the store was put back from a copy: no stream is taken for {seconds:.0f} s more")


def _stale(source: str, epoch: int, newest: int | None) -> StaleFence:
    return StaleFence(
        f"source {source!r}: epoch {epoch} is over (the newest is {newest or 'none'}); nothing was written"
    )
