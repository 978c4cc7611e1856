"""Upgrade of a queue in Redis that an older version of tailrace wrote: what waits was in one zset of each lane, and is
in one of each kind since tenants take turns. Whoever opens it first moves it over, in small steps; no item is lost
between two of them, since what waits stands in the tasks as well."""

from __future__ import annotations

from ...redis.server import RedisServer
from .script import queue_script

#: Items that one step moves: so long is the server held.
STEP = 1000

#: ARGV: time, how many at most. Answers how many it moved; 0: it is as it should be.
_UPGRADE = queue_script(
    "allow-oom",
    """
if meta('layout') >= 2 then return 0 end
local moved, most = 0, tonumber(ARGV[2])
for n = 1, meta('lanes') do
  local lane = be4(n)
  local old = base .. 'lane:' .. lane
  local found = call('ZRANGE', old, 0, most - moved - 1, 'WITHSCORES')
  local ids = {}
  for i = 1, #found, 2 do ids[#ids + 1] = found[i] end
  for i, task in ipairs(fields('tasks', ids)) do
    if task and #task == 38 then put(task, found[2 * i], ids[i]) end
  end
  if #ids > 0 then
    call('ZREMRANGEBYRANK', old, 0, #ids - 1)
    moved = moved + #ids
  end
  if moved >= most then break end
end
if moved == 0 then call('HSET', base .. 'meta', 'layout', 2) end
tell()
return moved
""",
)


async def upgrade(server: RedisServer, base: str) -> int:
    """Moves what is to be moved; how many items."""
    moved = 0
    while step := int(await server.run(_UPGRADE, [base], -1, STEP, about="an upgrade")):
        moved += step
    return moved
