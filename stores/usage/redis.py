"""Usage in Redis: a hash for each hour, with a field for each kind, whose value is the number of items and
microseconds."""

from __future__ import annotations

from typing import Any

from ...model.usage import HOUR, KEPT_HOURS, MOST_FUNCTIONS, MOST_KINDS, OTHERS, UsageReport, UsageRow, beyond
from ..redis.script_flags import grows, reads
from ..redis.sort_keys import packed, unpacked
from ..state.redis_server import StateServer

#: KEYS: the scheduler's last report, the hours; the names of the hours' hashes begin with the name of the latter. ARGV:
#: number, below, seconds for which the number is kept, most kinds, most functions beyond them; of each row its hour,
#: and its field when it is counted by itself, by its function, or with all others; items, microseconds. Answers whether
#: it was counted.
_ADD = grows("""
if tonumber(redis.call('GET', KEYS[1]) or '0') >= tonumber(ARGV[1]) then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'EX', ARGV[3])
local below, kinds, most = tonumber(ARGV[2]), tonumber(ARGV[4]), tonumber(ARGV[4]) + tonumber(ARGV[5])
for at = 6, #ARGV, 6 do
  local hour, place = ARGV[at], ARGV[at + 1]
  if tonumber(hour) >= below then
    local key = KEYS[2] .. ':' .. hour
    local was = redis.call('HGET', key, place)
    if not was then
      local known = redis.call('HLEN', key)
      if known == 0 then redis.call('ZADD', KEYS[2], hour, hour) end
      if known >= kinds then
        place = ARGV[at + 2]
        was = redis.call('HGET', key, place)
        if not was and known >= most then
          place = ARGV[at + 3]
          was = redis.call('HGET', key, place)
        end
      end
    end
    local items, micros = string.match(was or '0 0', '(%d+) (%d+)')
    redis.call('HSET', key, place, string.format('%.0f %.0f', items + ARGV[at + 4], micros + ARGV[at + 5]))
  end
end
for _, hour in ipairs(redis.call('ZRANGE', KEYS[2], '-inf', '(' .. ARGV[2], 'BYSCORE')) do
  redis.call('UNLINK', KEYS[2] .. ':' .. hour)
  redis.call('ZREM', KEYS[2], hour)
end
return 1
""")
#: KEYS: an hour's hash.
_OF_HOUR = reads("return redis.call('HGETALL', KEYS[1])")
#: Seconds for which the number of a scheduler's last report is kept: a report is never about an earlier hour.
_KEPT = (KEPT_HOURS + 48) * HOUR


class RedisUsage:
    """Usage in the state on one server."""

    def __init__(self, server: StateServer) -> None:
        self._server = server
        self._hours = server.key("usage")

    async def add(self, report: UsageReport, below: int) -> bool:
        arguments: list[Any] = [report.number, below, _KEPT, MOST_KINDS, MOST_FUNCTIONS]
        for row in report.rows:
            arguments += (row.hour, packed(row.function, row.tenant, row.downstreams))
            arguments += (
                packed(row.function, OTHERS, row.downstreams),
                packed(OTHERS, OTHERS, beyond(row.downstreams)),
            )
            arguments += (row.items, row.micros)
        keys = [self._server.key("usage", "reports", report.scheduler), self._hours]
        return bool(await self._server.run(_ADD, keys, *arguments, about="usage"))

    async def hours(self) -> list[int]:
        return [int(hour) for hour in await self._server.call("ZRANGE", self._hours, 0, -1, about="usage")]

    async def of_hour(self, hour: int) -> list[UsageRow]:
        flat = await self._server.run(_OF_HOUR, [f"{self._hours}:{hour}"], about="usage")
        return sorted(_row(hour, member, value) for member, value in zip(flat[::2], flat[1::2], strict=True))


def _row(hour: int, member: bytes, value: bytes) -> UsageRow:
    (function, tenant, downstreams), _ = unpacked(member, 3)
    items, micros = value.split()
    return UsageRow(hour, function, tenant, downstreams, int(items), int(micros))
