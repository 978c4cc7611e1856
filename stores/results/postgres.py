"""Results in PostgreSQL, bounded by age and by bytes; the oldest go first. The time is the server's."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ..postgres.arrays import blobs, texts
from ..postgres.schema import PostgresSchema
from ..trusted_time import TrustedTime

_PUT = "SELECT 1 FROM S.results_put_of(%s::bigint, %s::text[], %s::bytea[], %s::text[], %s::bigint)"
_SWEEP = "SELECT gone FROM S.results_sweep(%s::bigint, %s::bigint) AS gone"


class PostgresResults:
    """Results in one schema: kept for `retention` seconds by the `trusted` time of the server, and at most `max_bytes`
    of them. `store_time` is for tests: µs instead of the server's clock."""

    def __init__(
        self,
        schema: PostgresSchema,
        *,
        retention: float = 3600.0,
        max_bytes: int = 256 << 20,
        store_time: Callable[[], int | None] = lambda: None,
        trusted: TrustedTime | None = None,
    ) -> None:
        self._trusted = trusted or TrustedTime()
        self._schema = schema
        self._retention = int(retention * 1e6)
        self._max_bytes = max_bytes
        self._time = store_time

    async def put(self, results: Mapping[str, bytes]) -> None:
        await self.put_of(results, {})

    async def put_of(self, results: Mapping[str, bytes], tenants: Mapping[str, str]) -> None:
        if results:
            ids, values = texts(list(results)), blobs(list(results.values()))
            whose = texts([tenants.get(id, "") for id in results])
            await self._schema.write(_PUT, (self._time(), ids, values, whose, self._max_bytes), "results")

    async def get(self, id: str) -> bytes | None:
        rows = await self._schema.read(
            "SELECT result FROM S.results WHERE id = %s AND at >= %s",
            (id, self._trusted.carried_on - self._retention),
            "a result",
        )
        return bytes(rows[0][0]) if rows else None

    async def gone(self, id: str) -> bool:
        return bool(await self._schema.read("SELECT 1 FROM S.results_gone WHERE id = %s", (id,), "a result"))

    async def sweep(self) -> int:
        """Forgets some results that are past their retention; returns how many."""
        [(now,)] = await self._schema.read("SELECT S.now_micros(%s::bigint)", (self._time(),), "the time")
        [(gone,)] = await self._schema.write(_SWEEP, (self._trusted.micros(now), self._retention), "old results")
        return int(gone)
