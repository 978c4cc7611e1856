"""Repair of indexes, so that every waiting or leased item can be found. If an operator's hand lost an index of the
tasks (`kind:…`, `firsts:…`, `ring:…`, `soon:…`, `heads`, `keyed`, `leases`, `claims`, `out`, `ended`), it is built
again, and no workload is lost.

The check compares a few numbers, with each sweep that removed nothing; the repair goes through all tasks, in small
steps.
"""

from __future__ import annotations

import logging
import math

from ....foundation.clock import Clock
from ...redis.server import RedisServer
from .script import queue_script

#: Most tasks that one step looks at.
STEP = 500
#: Seconds until indexes that still do not add up after a repair are repaired again.
AGAIN = 3600.0

_LOG = logging.getLogger("tailrace.stores")

#: Answers 0 when all numbers agree; 1: those of waiting or leased items do not; 2: those of ended items do not.
_AUDIT = queue_script(
    "no-writes",
    """
local counts, waiting = {}, 0
local flat = call('HGETALL', base .. 'counts')
for i = 1, #flat, 2 do counts[tonumber(flat[i])] = tonumber(flat[i + 1]) end
local function of(state) return counts[state] or 0 end
for n = 1, meta('lanes') do
  local lane = be4(n)
  local count = call('ZCARD', base .. 'firsts:' .. lane)
  if (count > 0) ~= (call('ZSCORE', base .. 'heads', lane) and true)
    or count ~= call('ZCARD', base .. 'ring:' .. lane) + call('ZCARD', base .. 'soon:' .. lane)
  then return 1 end
  for from = 0, count - 1, 1000 do
    for _, kind in ipairs(call('ZRANGE', base .. 'firsts:' .. lane, from, from + 999)) do
      waiting = waiting + call('ZCARD', base .. 'kind:' .. kind)
    end
  end
end
local out = 0
for _, count in ipairs(call('HVALS', base .. 'out')) do out = out + tonumber(count) end
local claims = call('HLEN', base .. 'claims')
if waiting + of(100) ~= of(0) + of(1) or out ~= of(2) + of(3) + of(4) or claims ~= call('ZCARD', base .. 'leases')
  or claims ~= call('HLEN', base .. 'out') or call('ZCARD', base .. 'keyed') ~= call('HLEN', base .. 'places')
then return 1 end
if call('LLEN', base .. 'ended') < of(10) + of(11) + of(12) + of(13) + of(14) then return 2 end
return 0
""",
)

#: ARGV: time, cursor, tasks a step, whether `ended` is built again, whether this is the second round, in which the
#: first item of each key is known. Answers the next cursor and how many items were put back.
_MEND = queue_script(
    "allow-oom",
    """
local anew = ARGV[4] == '1'
local second = ARGV[5] == '1'
if ARGV[2] == '0' and not second then
  call('DEL', base .. 'heads')
  if anew then call('DEL', base .. 'ended') end
  for n = 1, meta('lanes') do
    local lane = be4(n)
    lanes[lane] = true
    call('DEL', base .. 'firsts:' .. lane, base .. 'ring:' .. lane, base .. 'soon:' .. lane)
  end
end
local step = call('HSCAN', base .. 'tasks', ARGV[2], 'COUNT', tonumber(ARGV[3]))
local known, astray, rows, mended, over = {}, {}, {}, 0, {}
for i = 1, #step[2], 2 do
  local id, task = step[2][i], step[2][i + 1]
  if #task == 38 then
    local state, flags, at = byte(task, 1), byte(task, 2), sub(task, 31)
    local place = state < 5 and has(flags, 4) and call('HGET', base .. 'places', id)
    if second then
      local key = place and state < 2 and has(flags, 64) and sub(place, 1, -9)
      if key and call('ZRANGEBYLEX', base .. 'keyed', '[' .. key, '+', 'LIMIT', 0, 1)[1] == place then
        call('HSET', base .. 'tasks', id, char(state, flags - 64) .. sub(task, 3))
        put(task, string.format('%.0f', int8(at, 1)), id)
        moves[100] = (moves[100] or 0) - 1
        mended = mended + 1
      end
      state = -1
    elseif place then
      mended = mended + call('ZADD', base .. 'keyed', 0, place)
    end
    if state >= 0 and state < 5 and int4(task, 15) > 0 then
      tried(id, sub(task, 3, 6), int4(task, 15))
    end
    if state >= 0 and state < 2 and not has(flags, 64) then
      local kind = sub(task, 7, 10)
      mended = mended + call('ZADD', base .. 'kind:' .. kind, 'NX', string.format('%.0f', int8(at, 1)), id)
      kinds[kind] = sub(task, 3, 6)
    elseif state >= 2 and state <= 4 then
      if known[at] == nil then
        known[at] = call('ZSCORE', base .. 'leases', at) and call('HEXISTS', base .. 'out', at) == 1
          and call('HEXISTS', base .. 'claims', at) == 1
        if not known[at] then
          call('ZREM', base .. 'leases', at)
          call('HDEL', base .. 'out', at)
          call('HDEL', base .. 'claims', at)
        end
      end
      if not known[at] then
        astray[#astray + 1] = id
        rows[#rows + 1] = id
        rows[#rows + 1] = task
      end
    elseif anew and state > 4 then
      over[#over + 1] = id
    end
  end
end
if #over > 0 then many('RPUSH', 'ended', over) end
if #astray > 0 then
  local claim = be8(call('HINCRBY', base .. 'meta', 'claim', 1))
  for i = 2, #rows, 2 do rows[i] = sub(rows[i], 1, 30) .. claim end
  many('HSET', 'tasks', rows)
  call('HSET', base .. 'claims', claim, concat(astray))
  call('HSET', base .. 'out', claim, #astray)
  call('ZADD', base .. 'leases', now + meta('longest'), claim)
end
tell()
return {step[1], mended + #astray + #over}
""",
)


class Repair:
    """The repair of one queue's indexes."""

    def __init__(self, server: RedisServer, base: str, clock: Clock) -> None:
        self._server = server
        self._base = base
        self._clock = clock
        self._mended = -math.inf

    async def look(self, time: int) -> None:
        """Checks the indexes, and repairs them if they do not add up. Raises the errors of the server's calls."""
        wrong = await self._server.run(_AUDIT, [self._base], time, about="a check of the queue's indexes")
        if not wrong or abs(self._clock.monotonic() - self._mended) < AGAIN:
            return
        self._mended = self._clock.monotonic()
        _LOG.warning("%s: the queue's indexes do not agree with its tasks: they are built again", self._server.name)
        found = 0
        for second in range(2):
            cursor = b""
            while cursor != b"0":
                arguments = (time, cursor or b"0", STEP, int(wrong == 2), second)
                cursor, count = await self._server.run(
                    _MEND, [self._base], *arguments, about="a repair of the queue's indexes"
                )
                found += count
        _LOG.warning("%s: %d workloads were put back into the queue's indexes", self._server.name, found)
