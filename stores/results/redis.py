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

#: KEYS: results, ids by age, book, the tenants of ids, bytes by tenant, ids of tenants by age (`TENANT` NUL `AGE` NUL
#: `ID`, in the order of the alphabet), ids of results that were pushed out, by age. ARGV: now and the oldest time to be
#: kept (µs), most bytes, most results to forget; then id, result and tenant of each. Answers how many were forgotten.
_KEEP = """
local function size_of(id) return redis.call('HSTRLEN', KEYS[1], id) end
local function leave(id, age, size)
  local tenant = redis.call('HGET', KEYS[4], id)
  if not tenant then return end
  redis.call('HDEL', KEYS[4], id)
  redis.call('ZREM', KEYS[6], tenant .. '\\0' .. string.format('%017.0f', tonumber(age)) .. '\\0' .. id)
  redis.call('HINCRBY', KEYS[3], 'named', -size)
  if tonumber(redis.call('ZINCRBY', KEYS[5], -size, tenant)) <= 0 then redis.call('ZREM', KEYS[5], tenant) end
end
local function of_most(all)
  local named = redis.call('ZREVRANGE', KEYS[5], 0, 0, 'WITHSCORES')
  local tenant = named[1]
  if not tenant then return nil end
  if tonumber(named[2]) >= all - tonumber(redis.call('HGET', KEYS[3], 'named') or '0') then
    local first = redis.call('ZRANGEBYLEX', KEYS[6], '[' .. tenant .. '\\0', '(' .. tenant .. '\\1', 'LIMIT', 0, 1)[1]
    return first and string.sub(first, #tenant + 20)
  end
  for _, id in ipairs(redis.call('ZRANGE', KEYS[2], 0, 99)) do
    if redis.call('HEXISTS', KEYS[4], id) == 0 then return id end
  end
  return nil
end
local newest = redis.call('ZREVRANGE', KEYS[2], 0, 0, 'WITHSCORES')[2]
local at, bytes = math.max(tonumber(ARGV[1]), tonumber(newest or '0') + 1), 0
for place = 5, #ARGV, 3 do
  local id, result, tenant = ARGV[place], ARGV[place + 1], ARGV[place + 2]
  local former = redis.call('ZSCORE', KEYS[2], id)
  bytes = bytes + #result - size_of(id)
  if former then leave(id, former, size_of(id)) end
  redis.call('HSET', KEYS[1], id, result)
  redis.call('ZADD', KEYS[2], string.format('%.0f', at), id)
  if tenant ~= '' then
    redis.call('HSET', KEYS[4], id, tenant)
    redis.call('HINCRBY', KEYS[3], 'named', #result)
    redis.call('ZINCRBY', KEYS[5], #result, tenant)
    redis.call('ZADD', KEYS[6], 0, tenant .. '\\0' .. string.format('%017.0f', at) .. '\\0' .. id)
  end
  at = at + 1
end
bytes = redis.call('HINCRBY', KEYS[3], 'bytes', bytes)
local most, left, freed = tonumber(ARGV[3]), tonumber(ARGV[4]), 0
while left > 0 do
  local oldest = redis.call('ZRANGE', KEYS[2], 0, 0, 'WITHSCORES')
  if not oldest[1] or (bytes - freed <= most and tonumber(oldest[2]) >= tonumber(ARGV[2])) then break end
  local id, age = oldest[1], oldest[2]
  if tonumber(age) >= tonumber(ARGV[2]) then
    id = of_most(bytes - freed) or id
    age = redis.call('ZSCORE', KEYS[2], id)
    redis.call('ZADD', KEYS[7], age, id)
    redis.call('ZREMRANGEBYRANK', KEYS[7], 0, -100001)
  end
  local size = size_of(id)
  freed = freed + size
  leave(id, age, size)
  redis.call('HDEL', KEYS[1], id)
  redis.call('ZREM', KEYS[2], id)
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
        names = ((), ("ages",), ("book",), ("tenants",), ("rooms",), ("tenant-ages",), ("gone",))
        self._keys = [server.key("results", *name) for name in names]
        self._clock = clock
        self._retention = retention
        self._max_bytes = max_bytes

    async def put(self, results: Mapping[str, bytes]) -> None:
        await self.put_of(results, {})

    async def put_of(self, results: Mapping[str, bytes], tenants: Mapping[str, str]) -> None:
        step: list[str | bytes] = []
        size = 0
        for id, result in results.items():
            step += (id, result, tenants.get(id, ""))
            size += len(result)
            if len(step) >= 3 * STEP or size >= STEP_BYTES:
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
        return await self._server.run(_GONE, self._keys[6:], id, about="results") is not None
