"""Submissions to the queue in Redis: the script, and its arguments.

The server numbers the items, so that ids rise in the order in which items were stored, whichever node submitted them.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import msgspec

from ....model.errors import Overloaded
from ....model.tenant_key import KeyRule, tenant_key
from ..admission import dedupe_name
from ..kinds import Kinds
from ..queue import NewItem, Submitted
from .script import AT_HOME, DEDUPED, EXTRA, KEYED, queue_script

_NEW = struct.Struct(">BBIIIIHHQQ").pack
_encode = msgspec.json.Encoder().encode

#: ARGV: time, home, position, the highest number of a kind, most live items, number of items, task and payload of each
#: (due 0: now), then for those with options: number, extra, key, dedupe name. Answers MOVED; or -1 and the number of
#: live items if there is no room; or the time, the ids, and the numbers of duplicates. It does not run on a server that
#: is out of memory.
SUBMIT_BODY = (
    AT_HOME
    + """
if call('LLEN', base .. 'kinds') < tonumber(ARGV[4]) then return {-2} end
local most, count = tonumber(ARGV[5]), tonumber(ARGV[6])
local tagged, again, names, fresh, same = {}, {}, {}, count, {}
for i = 7 + 2 * count, #ARGV, 4 do
  local number, name = tonumber(ARGV[i]), ARGV[i + 3]
  tagged[number] = i
  if name ~= '' then
    local known = call('HGET', base .. 'dedupe', name)
    if known or names[name] then
      again[number] = known or names[name]
      same[#same + 1] = number
      fresh = fresh - 1
    else
      names[name] = number
    end
  end
end
local live = 0
for _, each in ipairs(fields('counts', {0, 1, 2, 3, 4})) do live = live + tonumber(each or '0') end
if fresh > 0 and live + fresh > most then return {-1, live} end

-- An id: 41 bits of milliseconds since 2020 (the clock gives those up to 2087, as stores/queue/ids.py says), then 22
-- bits that count.
local ms, serial = math.min(max(0, floor(now / 1000) - 1577836800000), 2130303778816), 0
if ms <= meta('ms') then
  ms = meta('ms')
  serial = meta('serial') + 1
end
if serial + fresh > 4194304 then
  ms = ms + 1
  serial = 0
end
local high, low = be4(floor(ms / 1024)), (ms % 1024) * 4194304 + serial
local at, zero = be8(now), be8(0)
local ids, tasks, payloads, waiting = {}, {}, {}, {}
for i = 1, count do
  local known = again[i]
  if known then
    ids[i] = type(known) == 'number' and ids[known] or known
  else
    local id, task, due = high .. be4(low), ARGV[5 + 2 * i], now
    low = low + 1
    ids[i] = id
    if sub(task, 31) == zero then
      task = sub(task, 1, 30) .. at
    else
      due = int8(task, 31)
    end
    local blocked, tag = false, tagged[i]
    if tag then
      local extra, key, name = ARGV[tag + 1], ARGV[tag + 2], ARGV[tag + 3]
      if extra ~= '' then call('HSET', base .. 'extras', id, extra) end
      if key ~= '' then
        key = be4(#key) .. key
        local older = call('ZRANGEBYLEX', base .. 'keyed', '[' .. key, '(' .. key .. '\\255', 'LIMIT', 0, 1)
        blocked = older[1] ~= nil
        call('ZADD', base .. 'keyed', 0, key .. id)
        call('HSET', base .. 'places', id, key .. id)
      end
      if name ~= '' then
        call('HSET', base .. 'dedupe', name, id)
        call('HSET', base .. 'deduped', id, name)
      end
    end
    if blocked then
      moves[100] = (moves[100] or 0) + 1
      task = sub(task, 1, 1) .. char(byte(task, 2) + 64) .. sub(task, 3)
    else
      local kind = sub(task, 7, 10)
      local list = waiting[kind]
      if not list then
        list = {}
        waiting[kind] = list
        kinds[kind] = sub(task, 3, 6)
      end
      list[#list + 1] = due
      list[#list + 1] = id
    end
    local n = #tasks
    tasks[n + 1], tasks[n + 2] = id, task
    payloads[n + 1], payloads[n + 2] = id, ARGV[6 + 2 * i]
  end
end
if fresh > 0 then
  many('HSET', 'tasks', tasks)
  many('HSET', 'payloads', payloads)
  for kind, list in pairs(waiting) do many('ZADD', 'kind:' .. kind, list) end
  call('HSET', base .. 'meta', 'ms', ms, 'serial', serial + fresh - 1)
  call('HINCRBY', base .. 'meta', 'taken', fresh)
  call('HINCRBY', base .. 'counts', 0, fresh)
  tell()
end
return {now, concat(ids), same}
"""
)
SUBMIT = queue_script("", SUBMIT_BODY)


def new_rows(kinds: Kinds, items: Sequence[NewItem], rule: KeyRule = tenant_key) -> list[Any]:
    """The arguments of SUBMIT from the number of items on; their kinds have numbers. `rule`: the key of a tenant as it
    is kept."""
    plain: list[Any] = [len(items)]
    tagged: list[Any] = []
    lane_of, number_of = kinds.lane_of, kinds.numbers
    for index, item in enumerate(items, 1):
        flags = 0
        if item.key or item.headers or item.expires_at or item.dedupe_key:
            flags, tags = _tags(item, rule)
            tagged += (index, *tags)
        kind = number_of[item.kind]
        task = _NEW(0, flags, lane_of[kind], kind, len(item.payload), 0, 0, 0, 0, int(item.due * 1e6))
        plain += (task, item.payload)
    return plain + tagged


def _tags(item: NewItem, rule: KeyRule) -> tuple[int, tuple[bytes, bytes, bytes]]:
    """The flags of an item, and its extra, key and dedupe name as they are stored."""
    flags, extra, key, name = 0, b"", b"", b""
    if item.key or item.headers or item.expires_at:
        flags = EXTRA | (KEYED if item.key else 0)
        extra = _encode((item.key, item.headers, item.expires_at))
    if item.dedupe_key:
        flags |= DEDUPED
        name = item.kind.function.encode(errors="backslashreplace") + b"\0" + dedupe_name(item, rule).encode()
    if item.key:
        key = rule(item.kind.tenant, item.key).encode()
    return flags, (extra, key, name)


def submitted(answer: Sequence[Any], count: int, most: int) -> list[Submitted]:
    """Reads the answer of SUBMIT about so many items. Raises Overloaded if there was no room within `most`."""
    if answer[0] < 0:
        raise Overloaded(f"the queue holds {answer[1]} workloads and takes at most {most}; try again later", 5.0)
    _, stored, duplicates = answer
    same, text = frozenset(duplicates), stored.hex()
    ids = [text[index : index + 16] for index in range(0, 16 * count, 16)]
    return [Submitted(id, place in same) for place, id in enumerate(ids, 1)]
