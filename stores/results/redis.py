"""Results in Redis: a hash by id, a set of ids by age (microseconds, each later than all before), and their bytes.

Retention goes by the clock of the process that puts them; the oldest go first, a few at each write.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...foundation.clock import SYSTEM_CLOCK, Clock
from ..redis.script_flags import grows, reads, settles
from ..state.redis_server import StateServer
from ..trusted_time import TrustedTime

#: Results that one script forgets: a bound on the time that it holds the server.
SWEEP = 1000
#: Results of one script, and about how many bytes.
STEP, STEP_BYTES = 500, 4 << 20

#: KEYS: results, ids by age, book, ids of results that were pushed out, by age. ARGV: now and the oldest time to be
#: kept (µs), most bytes, most results to forget; then id and result of each. Answers how many were forgotten.
_KEEP = """
local function size_of(id) return redis.call('HSTRLEN', KEYS[1], id) end
local newest = redis.call('ZREVRANGE', KEYS[2], 0, 0, 'WITHSCORES')[2]
local at, bytes = math.max(tonumber(ARGV[1]), tonumber(newest or '0') + 1), 0
for place = 5, #ARGV, 2 do
  bytes = bytes + #ARGV[place + 1] - size_of(ARGV[place])
  redis.call('HSET', KEYS[1], ARGV[place], ARGV[place + 1])
  redis.call('ZADD', KEYS[2], string.format('%.0f', at), ARGV[place])
  at = at + 1
end
bytes = redis.call('HINCRBY', KEYS[3], 'bytes', bytes)
local most, left, freed = tonumber(ARGV[3]), tonumber(ARGV[4]), 0
while left > 0 do
  local oldest = redis.call('ZRANGE', KEYS[2], 0, 0, 'WITHSCORES')
  local too_old = oldest[1] and tonumber(oldest[2]) < tonumber(ARGV[2])
  if not oldest[1] or (bytes - freed <= most and not too_old) then break end
  if not too_old then
    redis.call('ZADD', KEYS[4], oldest[2], oldest[1])
    redis.call('ZREMRANGEBYRANK', KEYS[4], 0, -100001)
  end
  freed = freed + size_of(oldest[1])
  redis.call('HDEL', KEYS[1], oldest[1])
  redis.call('ZREM', KEYS[2], oldest[1])
  left = left - 1
end
if freed > 0 then redis.call('HINCRBY', KEYS[3], 'bytes', -freed) end
return tonumber(ARGV[4]) - left
"""
_PUT, _SWEEP = grows(_KEEP), settles(_KEEP)
#: KEYS: results, ids by age. ARGV: id. Answers when it was put, and the result.
_GET = reads("return {redis.call('ZSCORE', KEYS[2], ARGV[1]), redis.call('HGET', KEYS[1], ARGV[1])}")
#: KEYS: ids of results that were pushed out. ARGV: id. Answers when that one was put.
_GONE = reads("return redis.call('ZSCORE', KEYS[1], ARGV[1])")


class RedisResults:
    """Results in the state on one server: kept for `retention` seconds by this host's `trusted` time, and at most
    `max_bytes` of them."""

    def __init__(
        self,
        server: StateServer,
        clock: Clock = SYSTEM_CLOCK,
        *,
        retention: float = 3600.0,
        max_bytes: int = 256 << 20,
        trusted: TrustedTime | None = None,
    ) -> None:
        self._server, self._trusted = server, trusted or TrustedTime(clock)
        self._keys = [server.key("results"), *(server.key("results", name) for name in ("ages", "book", "gone"))]
        self._clock = clock
        self._retention = retention
        self._max_bytes = max_bytes

    async def put(self, results: Mapping[str, bytes]) -> None:
        step: list[str | bytes] = []
        size = 0
        for id, result in results.items():
            step += (id, result)
            size += len(result)
            if len(step) >= 2 * STEP or size >= STEP_BYTES:
                await self._server.run(_PUT, self._keys, *self._bounds(), *step, about="results")
                step, size = [], 0
        if step:
            await self._server.run(_PUT, self._keys, *self._bounds(), *step, about="results")

    def _bounds(self) -> tuple[int, int, int, int]:
        oldest = self._trusted.micros() - int(self._retention * 1e6)
        return int(self._clock.wall() * 1e6), oldest, self._max_bytes, SWEEP

    async def sweep(self) -> int:
        """Forgets some results that are past their retention; returns how many."""
        return int(await self._server.run(_SWEEP, self._keys, *self._bounds(), about="results"))

    async def get(self, id: str) -> bytes | None:
        oldest = self._trusted.micros() - int(self._retention * 1e6)
        at, result = await self._server.run(_GET, self._keys[:2], id, about="results")
        return result if at is not None and float(at) >= oldest else None

    async def gone(self, id: str) -> bool:
        return await self._server.run(_GONE, self._keys[3:], id, about="results") is not None
