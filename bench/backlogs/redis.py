"""Twins of items that wait under a prefix of the queue. A script on the server makes them, since sending rows would
cost more than writing them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...stores.queue.redis.options import RedisQueueOptions

#: Items that one call of the script reads.
PART = 1000
#: KEYS: the beginning of the queue's keys. ARGV: the oldest twin and the newest one to make, and ids of eight bytes
#: each. The format of a task is in stores/queue/redis/script.py.
_TWINS = """
local base, oldest, newest = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2])
local char, byte, sub, floor = string.char, string.byte, string.sub, math.floor
local function be4(n)
  return char(floor(n / 16777216) % 256, floor(n / 65536) % 256, floor(n / 256) % 256, n % 256)
end
local function int4(text, i)
  local a, b, c, d = byte(text, i, i + 3)
  return ((a * 256 + b) * 256 + c) * 256 + d
end
local ids = {}
for i = 1, #ARGV[3], 8 do ids[#ids + 1] = sub(ARGV[3], i, i + 7) end
local tasks = redis.call('HMGET', base .. 'tasks', unpack(ids))
local payloads = redis.call('HMGET', base .. 'payloads', unpack(ids))
local made = 0
for n = oldest, newest, -1 do
  local rows, bodies, waiting = {}, {}, {}
  for i, id in ipairs(ids) do
    local ms = int4(id, 1) * 1024 + floor(int4(id, 5) / 4194304) - n
    local twin = be4(floor(ms / 1024)) .. be4((ms % 1024) * 4194304 + int4(id, 5) % 4194304)
    local at = int4(tasks[i], 31) * 4294967296 + int4(tasks[i], 35) - n * 1000
    rows[2 * i - 1] = twin
    rows[2 * i] = sub(tasks[i], 1, 30) .. be4(floor(at / 4294967296)) .. be4(at % 4294967296)
    bodies[2 * i - 1], bodies[2 * i] = twin, payloads[i]
    local lane, kind = sub(tasks[i], 3, 6), sub(tasks[i], 7, 10)
    local list = waiting[kind] or {lane = lane}
    waiting[kind] = list
    list[#list + 1] = string.format('%.0f', at)
    list[#list + 1] = twin
  end
  redis.call('HSET', base .. 'tasks', unpack(rows))
  redis.call('HSET', base .. 'payloads', unpack(bodies))
  for kind, list in pairs(waiting) do
    redis.call('ZADD', base .. 'kind:' .. kind, unpack(list))
    redis.call('ZADD', base .. 'firsts:' .. list.lane, 'LT', list[1], kind)
    redis.call('ZADD', base .. 'heads', 'LT', list[1], list.lane)
  end
  made = made + #ids
end
redis.call('HINCRBY', base .. 'counts', 0, made)
redis.call('HINCRBY', base .. 'meta', 'taken', made)
return made
"""
#: Twins of each item that one call makes.
STEP = 20


async def add_twins(options: dict[str, Any], times: int, done: Callable[[float], None]) -> None:
    """Adds `times` twins of each item; the oldest first, as they would have come."""
    queue = RedisQueueOptions.model_validate({name: each for name, each in options.items() if name != "engine"})
    base = f"{{{queue.prefix}}}:queue:"
    client = queue.client()
    client.response_callbacks.clear()  # bytes, as they come
    try:
        found = sorted(await client.execute_command("HKEYS", f"{base}tasks"))
        for oldest in range(times, 0, -STEP):
            newest = max(1, oldest - STEP + 1)
            for first in range(0, len(found), PART):
                ids = b"".join(found[first : first + PART])
                await client.execute_command("EVAL", _TWINS, 1, base, oldest, newest, ids)
            done(1 - oldest / times)
    finally:
        await client.aclose()
        await client.connection_pool.disconnect()
