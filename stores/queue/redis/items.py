"""Single items of the queue in Redis: their content, and changes of due time or priority. Changes run even if the
server is out of memory, so that an operator can act then."""

from __future__ import annotations

import json

from ....model.errors import NotConnected
from ....model.one_item import BEHIND, CHANGED, ENDED, EXPIRES, OUT, UNKNOWN
from ..ids import id_text
from ..items import NOW, ItemContent, Reschedule
from .checked_server import CheckedRedis
from .reports import NO_ID, id_bytes, statuses
from .script import AT_HOME, MOVED, queue_script

#: Most tries of a change that finds a different server each time.
MOVES = 3

#: ARGV: time, home, position, id, due (µs; 0: now; -1: unchanged), new kind and lane (as stored; empty: unchanged).
#: Answers MOVED, or 0 and a letter.
RESCHEDULE = queue_script(
    "allow-oom",
    AT_HOME
    + """
local id, wanted, kind, lane = ARGV[4], tonumber(ARGV[5]), ARGV[6], ARGV[7]
if kind ~= '' and call('LLEN', base .. 'kinds') < int4(kind, 1) then return {-2} end
local task = call('HGET', base .. 'tasks', id)
if not task then return {0, 'u'} end
local state, flag = byte(task, 1), byte(task, 2)
if state > 4 then return {0, 'e'} end
if state > 1 then return {0, 'o'} end
local due = int8(task, 31)
if wanted == 0 then due = min(due, now) elseif wanted > 0 then due = wanted end
if flag % 2 == 1 then
  local extra = call('HGET', base .. 'extras', id)
  local expires = tonumber(extra and string.match(extra, ',([^,%]]+)%]$') or '0')
  if expires > 0 and expires <= due / 1000000 then return {0, 'x'} end
end
local before, blocked = sub(task, 7, 10), has(flag, 64)
if kind == '' then kind, lane = before, sub(task, 3, 6) end
if not blocked then
  call('ZREM', base .. 'kind:' .. before, id)
  kinds[before] = sub(task, 3, 6)
end
local attempts = int4(task, 15)
if kind ~= before and attempts > 0 then
  settled(id, task)
  tried(id, lane, attempts)
end
task = sub(task, 1, 2) .. lane .. kind .. sub(task, 11, 30) .. be8(due)
call('HSET', base .. 'tasks', id, task)
if not blocked then put(task, string.format('%.0f', due), id) end
tell()
return {0, blocked and 'b' or 'c'}
""",
)
#: ARGV: time, id, most bytes. Answers the payload's beginning and length, the extra, and the id of the item of the same
#: key that goes first; nothing for an item that has ended.
PEEK = queue_script(
    "no-writes",
    """
local task = call('HGET', base .. 'tasks', ARGV[2])
if not task or byte(task, 1) > 4 then return {} end
local payload = call('HGET', base .. 'payloads', ARGV[2]) or ''
local place = call('HGET', base .. 'places', ARGV[2])
local head = place and call('ZRANGEBYLEX', base .. 'keyed', '[' .. sub(place, 1, -9), '+', 'LIMIT', 0, 1)[1]
local behind = head and head ~= place and sub(head, -8) or ''
return {sub(payload, 1, tonumber(ARGV[3])), #payload, call('HGET', base .. 'extras', ARGV[2]) or '', behind}
""",
)

_ANSWERS = {b"c": CHANGED, b"b": BEHIND, b"x": EXPIRES, b"o": OUT, b"e": ENDED, b"u": UNKNOWN}


async def rescheduled(ground: CheckedRedis, change: Reschedule) -> str:
    """Changes an item that waits. Answers as `QueueItems.reschedule` does."""
    await ground.ready()
    due = -1 if change.due is None else 0 if change.due == NOW else int(change.due * 1e6)
    for _ in range(MOVES):
        kind, lane = b"", b""
        if change.priority is not None:
            [status] = await statuses(ground.server, ground.base, ground.kinds, [change.id])
            if status is None:
                return UNKNOWN
            wanted = status.kind._replace(priority=change.priority)
            await ground.kinds.add([wanted])
            number = ground.kinds.numbers[wanted]
            kind, lane = number.to_bytes(4, "big"), ground.kinds.lane_of[number].to_bytes(4, "big")
        id = id_bytes(change.id) or NO_ID
        found = await ground.run(RESCHEDULE, *ground.home.words, id, due, kind, lane, about="a change of a workload")
        if found[0] != MOVED:
            return _ANSWERS[found[1]]
        await ground.look_again()
    raise NotConnected(f"{ground.server.name}: a different server answers each time; nothing was changed")


async def peek(ground: CheckedRedis, id: str, max_bytes: int) -> ItemContent | None:
    """Returns the content of a live item."""
    found = await ground.run(PEEK, id_bytes(id) or NO_ID, max_bytes, about="a look at a workload")
    if not found:
        return None
    payload, size, extra, head = found
    key, headers, expires_at = json.loads(extra) if extra else ("", (), 0.0)
    behind = id_text(int.from_bytes(head, "big")) if head else ""
    return ItemContent(payload, size, key, tuple((name, value) for name, value in headers), expires_at, behind)
