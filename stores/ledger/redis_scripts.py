"""The Redis scripts of the ledger, and their keys. Of each source: its rows are a hash, by member; the members of rows
that wait (parking, parked, running) are one sorted set, those of the others (suspects, ended) another one, so that a
sweep meets no row that stays. A member is its partition and the position in nineteen digits. Of all sources: a hash of
the epoch and checkpoint that are noted (`heads`), and a hash with the number of rows of each partition in each place,
which is the last digit of the field (`places`)."""

from __future__ import annotations

from ..redis.script_flags import grows, reads, settles
from ..redis.sort_keys import EACH

_HEAD = """
local epoch, passed = nil, '0000000000000000000'
local head = redis.call('HGET', KEYS[1], ARGV[1])
if head then epoch, passed = string.match(head, '^(%d+) (%d+)$') end
local function keep(epoch, passed) redis.call('HSET', KEYS[1], ARGV[1], epoch .. ' ' .. passed) end
"""
#: Counters of a partition's rows by place; ARGV[1] is how their fields begin.
_COUNTED = """
local moves = {}
local function moved(place, count) moves[place] = (moves[place] or 0) + count end
local function count_moved(key)
  for place, count in pairs(moves) do
    if count ~= 0 and redis.call('HINCRBY', key, ARGV[1] .. place, count) <= 0 then
      redis.call('HDEL', key, ARGV[1] .. place)
    end
  end
end
"""

#: KEYS: heads. ARGV: source and partition, epoch. Answers 1 and the noted checkpoint, or 0 and the newer epoch.
OPEN = settles(
    _HEAD
    + """
if epoch and tonumber(epoch) > tonumber(ARGV[2]) then return {0, epoch} end
keep(ARGV[2], passed)
return {1, passed}
"""
)

#: KEYS: rows, those that wait, the others. ARGV: the first and the last member, how many of each. Answers members and
#: rows.
PAGE = reads("""
local answer = {}
for set = 2, 3 do
  for _, member in ipairs(redis.call('ZRANGEBYLEX', KEYS[set], ARGV[1], ARGV[2], 'LIMIT', 0, ARGV[3])) do
    answer[#answer + 1] = member
    answer[#answer + 1] = redis.call('HGET', KEYS[1], member)
  end
end
return answer
""")

#: KEYS: heads, rows, those that wait, the others, ended, places. ARGV: source and partition, the owner's epoch or
#: nothing, how the partition's members begin; of each change its position, the row before and after (no row: nothing),
#: their places, and whether what was parked ends with it. Answers 1 and of each change 1 where the row is as wanted,
#: nothing where there is none, else the row; or 0 and the newest epoch.
_WRITE = (
    EACH
    + _HEAD
    + _COUNTED
    + """
if ARGV[2] ~= '' and epoch ~= ARGV[2] then return {0, epoch or 'none'} end
local begin, members, known, stands, order = ARGV[3], {}, {}, {}, {}
for at = 4, #ARGV, 6 do
  local member = begin .. ARGV[at]
  members[#members + 1] = member
  if not known[member] then
    known[member] = true
    order[#order + 1] = member
  end
end
for first = 1, #order, 1000 do
  local last = math.min(first + 999, #order)
  for place, row in ipairs(redis.call('HMGET', KEYS[2], unpack(order, first, last))) do
    stands[order[first + place - 1]] = row or ''
  end
end

local places, ended, answer = {}, {}, {1}
for place, member in ipairs(members) do
  local at = 4 + (place - 1) * 6
  local before, after = ARGV[at + 1], ARGV[at + 2]
  if stands[member] == before and before ~= after and (before ~= '' or ARGV[at] >= passed) then
    stands[member], places[member] = after, ARGV[at + 4]
    if before ~= '' then moved(ARGV[at + 3], -1) end
    moved(ARGV[at + 4], 1)
    if ARGV[at + 5] == '1' then ended[ARGV[at + 4]] = (ended[ARGV[at + 4]] or 0) + 1 end
  end
  answer[place + 1] = stands[member] == after and 1 or stands[member]
end

local rows, gone, come, left = {}, {}, {{}, {}}, {{}, {}}
for _, member in ipairs(order) do
  local place = places[member]
  if place then
    local set = (place >= '2' and place <= '4') and 1 or 2
    left[3 - set][#left[3 - set] + 1] = member
    if place >= '5' and string.sub(member, #begin + 1) < passed then -- nobody asks for it any more
      gone[#gone + 1] = member
      left[set][#left[set] + 1] = member
      moved(place, -1)
    else
      rows[#rows + 1] = member
      rows[#rows + 1] = stands[member]
      come[set][#come[set] + 1] = 0
      come[set][#come[set] + 1] = member
    end
  end
end
each(2, rows, 'HSET', KEYS[2])
each(1, gone, 'HDEL', KEYS[2])
for set = 1, 2 do
  each(2, come[set], 'ZADD', KEYS[2 + set])
  each(1, left[set], 'ZREM', KEYS[2 + set])
end
for place, count in pairs(ended) do redis.call('HINCRBY', KEYS[5], begin .. place, count) end
count_moved(KEYS[6])
return answer
"""
)
#: WRITE_NEW is for changes that make rows, WRITE for changes that only move them.
WRITE_NEW, WRITE = grows(_WRITE), settles(_WRITE)

#: KEYS: heads, rows, the others, places. ARGV: source and partition, epoch, position, how the partition's members
#: begin, how many rows at most. Answers 1 and how many went, or 0 and the newest epoch.
PASSED = settles(
    EACH
    + _HEAD
    + _COUNTED
    + """
if epoch ~= ARGV[2] then return {0, epoch or 'none'} end
if ARGV[3] > passed then
  passed = ARGV[3]
  keep(epoch, passed)
end
local over = redis.call('ZRANGEBYLEX', KEYS[3], '[' .. ARGV[4], '(' .. ARGV[4] .. passed, 'LIMIT', 0, ARGV[5])
for _, member in ipairs(over) do moved(string.match(redis.call('HGET', KEYS[2], member), '^%[%d+, (%d)'), -1) end
each(1, over, 'HDEL', KEYS[2])
each(1, over, 'ZREM', KEYS[3])
count_moved(KEYS[4])
return {1, #over}
"""
)

#: KEYS: places, ended. Answers both.
COUNTED = reads("return {redis.call('HGETALL', KEYS[1]), redis.call('HGETALL', KEYS[2])}")
