"""The common beginning of every script of the queue in Redis: keys, time, the format of a task, and updates of indexes.

All keys begin with one name that has a hash tag, so that they are in one slot of a cluster; scripts build the keys'
names from it. A script either refuses before its first write or does all its work: Redis runs one script at a time, and
writes it as a whole to its append-only file.

    tasks      hash    id → the task, 38 bytes, as below; until the retention removes it
    payloads   hash    id → payload; extras: key, headers, expiry; both are deleted when the item ends
    reasons, progress, tries   hashes of texts about an item, if there are any
    kind:KIND  zset    waiting items of a kind, by their next trigger (µs), then id
    firsts:LANE zset   kinds of a lane that have waiting items, by the next trigger of the first item
    ring:LANE  zset    those of these kinds that have due items, by their turns; soon:LANE: the others, by that trigger
    heads      zset    lane → next trigger of its first item: the one index that a poll reads
    keyed      zset    key and id of live items with a key, in order; only the first of a key is in a kind's zset
    tried:LANE zset    live items of a lane that have spent attempts, by how many
    tried      set     lanes that have such items
    dedupe     hash    function and dedupe key → id; deduped: the inverse
    leases     zset    claim → its end (µs); claims: claim → its ids; out: claim → how many of these are still leased
    ended      list    ids in the order of their ends
    kinds      list    the lane and the words of each kind; kind_numbers, lane_numbers: the inverse
    counts     hash    state → how many; 100 → how many wait for an older one of their key
    meta       hash    fence, claim, position, home, …

A task, in bytes: state 1, flags 1, lane 4, kind 4, size 4, attempts 4, crashes 2, throttles 2, fence 8, at 8 (of a
waiting item its next trigger, of a leased one its claim, of an ended one that time). Numbers are big-endian.
"""

from __future__ import annotations

from ...redis.server import Script

#: Flags of a task; the scripts have the same numbers.
EXTRA = 1  # key, headers or expiry
CANCEL = 2  # its holder is to be told
KEYED = 4  # in `keyed`
DEDUPED = 8
TRIED = 16  # in `tries`
TOLD = 32  # in `reasons` or `progress`
BLOCKED = 64  # waits for an older one of its key, in no kind's zset

_PRELUDE = """
local call, floor, sub, byte, char = redis.call, math.floor, string.sub, string.byte, string.char
local concat, unpack, min, max = table.concat, unpack, math.min, math.max
local base = KEYS[1]
local now = tonumber(ARGV[1])
if now < 0 then
  local time = call('TIME')
  now = tonumber(time[1]) * 1000000 + tonumber(time[2])
end

local function be4(n)
  return char(floor(n / 16777216) % 256, floor(n / 65536) % 256, floor(n / 256) % 256, n % 256)
end
local function be8(n) return be4(floor(n / 4294967296)) .. be4(n % 4294967296) end
local function int2(text, i)
  local a, b = byte(text, i, i + 1)
  return a * 256 + b
end
local function int4(text, i)
  local a, b, c, d = byte(text, i, i + 3)
  return ((a * 256 + b) * 256 + c) * 256 + d
end
local function int8(text, i) return int4(text, i) * 4294967296 + int4(text, i + 4) end
local function has(flags, flag) return floor(flags / flag) % 2 == 1 end
local function with(flags, flag) return has(flags, flag) and flags or flags + flag end

-- A variadic command over any number of arguments; pairs stay whole.
local function many(command, key, list)
  for i = 1, #list, 4000 do call(command, base .. key, unpack(list, i, min(i + 3999, #list))) end
end
local function fields(key, names)
  if #names == 0 then return {} end
  if #names <= 4000 then return call('HMGET', base .. key, unpack(names)) end
  local found = {}
  for i = 1, #names, 4000 do
    for _, each in ipairs(call('HMGET', base .. key, unpack(names, i, min(i + 3999, #names)))) do
      found[#found + 1] = each
    end
  end
  return found
end
local function cut(blob, width)
  local found = {}
  for i = 1, #blob, width do found[#found + 1] = sub(blob, i, i + width - 1) end
  return found
end
local function meta(name) return tonumber(call('HGET', base .. 'meta', name) or '0') end

-- What moves with a state: the counts, and the first of each kind and lane that something came to or went from.
local moves, lanes, kinds = {}, {}, {}
local function moved(before, after)
  moves[before] = (moves[before] or 0) - 1
  moves[after] = (moves[after] or 0) + 1
end
local function put(task, trigger, id)
  local kind = sub(task, 7, 10)
  call('ZADD', base .. 'kind:' .. kind, trigger, id)
  kinds[kind] = sub(task, 3, 6)
end
-- Something came to a kind or went from it: is it due, when is it, and whose turn is it? With a `turn` it had one, and
-- has the next one then; without one, it keeps its own where it waits for one, and is else behind all that do.
local function place(kind, lane, turn)
  local head = call('ZRANGE', base .. 'kind:' .. kind, 0, 0, 'WITHSCORES')
  if not head[1] then
    call('ZREM', base .. 'firsts:' .. lane, kind)
    if call('ZREM', base .. 'ring:' .. lane, kind) == 0 then call('ZREM', base .. 'soon:' .. lane, kind) end
  else
    call('ZADD', base .. 'firsts:' .. lane, head[2], kind)
    if tonumber(head[2]) > now then
      call('ZADD', base .. 'soon:' .. lane, head[2], kind)
      call('ZREM', base .. 'ring:' .. lane, kind)
    elseif turn then
      call('ZADD', base .. 'ring:' .. lane, turn, kind)
    elseif call('ZADD', base .. 'ring:' .. lane, 'NX', meta('turn') + 1, kind) == 1 then
      call('ZREM', base .. 'soon:' .. lane, kind)
    end
  end
  lanes[lane] = true
end
local function tell()
  for state, count in pairs(moves) do
    if count ~= 0 then call('HINCRBY', base .. 'counts', state, count) end
  end
  for kind, lane in pairs(kinds) do place(kind, lane) end
  for lane in pairs(lanes) do
    local first = call('ZRANGE', base .. 'firsts:' .. lane, 0, 0, 'WITHSCORES')
    if first[1] then
      call('ZADD', base .. 'heads', first[2], lane)
    else
      call('ZREM', base .. 'heads', lane)
    end
  end
end
-- A time to wait for that is not after any other of the task's kind: who has it is leased first of those.
local function first(task)
  local head = call('ZRANGE', base .. 'kind:' .. sub(task, 7, 10), 0, 0, 'WITHSCORES')
  return head[1] and min(now, tonumber(head[2])) or now
end

-- An item with a key has ended: the next one of its key may run, when it is due.
local freed = false
local function release(id)
  local place = call('HGET', base .. 'places', id)
  if not place then return end
  call('HDEL', base .. 'places', id)
  call('ZREM', base .. 'keyed', place)
  local key = sub(place, 1, -9)
  local next = call('ZRANGEBYLEX', base .. 'keyed', '[' .. key, '(' .. key .. '\\255', 'LIMIT', 0, 1)[1]
  if not next then return end
  local heir = sub(next, -8)
  local task = call('HGET', base .. 'tasks', heir)
  if task and has(byte(task, 2), 64) and byte(task, 1) < 2 then
    moves[100] = (moves[100] or 0) - 1
    call('HSET', base .. 'tasks', heir, sub(task, 1, 1) .. char(byte(task, 2) - 64) .. sub(task, 3))
    put(task, string.format('%.0f', int8(task, 31)), heir)
    freed = true
  end
end
-- A live item has spent so many attempts.
local function tried(id, lane, attempts)
  call('ZADD', base .. 'tried:' .. lane, attempts, id)
  call('SADD', base .. 'tried', lane)
end
-- An item ends: if it had spent attempts, nobody asks after them any more.
local function settled(id, task)
  if sub(task, 15, 18) == '\\0\\0\\0\\0' then return end
  local lane = sub(task, 3, 6)
  call('ZREM', base .. 'tried:' .. lane, id)
  if call('EXISTS', base .. 'tried:' .. lane) == 0 then call('SREM', base .. 'tried', lane) end
end
-- What goes with the end of items, whose tasks are written already.
local function ended(ids, flags)
  if #ids == 0 then return end
  many('HDEL', 'payloads', ids)
  many('RPUSH', 'ended', ids)
  for i, id in ipairs(ids) do
    local flag = flags[i]
    if flag % 2 == 1 then call('HDEL', base .. 'extras', id) end
    if has(flag, 4) then release(id) end
  end
end
-- So many items of each claim are out no more.
local function back(claims)
  for claim, count in pairs(claims) do
    if tonumber(call('HINCRBY', base .. 'out', claim, -count)) <= 0 then
      call('HDEL', base .. 'out', claim)
      call('HDEL', base .. 'claims', claim)
      call('ZREM', base .. 'leases', claim)
    end
  end
end
local function next_fence()
  local fence = max(now, meta('fence') + 1)
  call('HSET', base .. 'meta', 'fence', string.format('%.0f', fence))
  return fence
end
"""


#: Check for scripts whose next ARGV are the home and the position that the calling process knows: answers MOVED unless
#: this is the server that the queue knows, with all writes that the process knows of.
AT_HOME = """
local facts = fields('meta', {'home', 'position', 'quiet'})
local info = redis.pcall('INFO', 'server')
local here = type(info) == 'string' and string.match(info, 'run_id:(%w+)') or 'unknown'
if facts[1] ~= here or ARGV[2] ~= here or tonumber(facts[2] or '0') < tonumber(ARGV[3]) then return {-2} end
"""
#: First value in the answer of such a script if the server must be checked first.
MOVED = -2


def queue_script(flags: str, body: str) -> Script:
    """A script of the queue. KEYS: the beginning of the names of its keys. The first of ARGV is the time in µs, or -1
    for the server's time."""
    return Script(f"#!lua flags={flags}\n{_PRELUDE}\n{body}")
