"""The Redis scripts of dead letters, and their keys. A letter has a number. By number: its text (`letters`, a JSON
array of which the scripts read the first three: id, function, and its place as a member), its payload, and the sets of
letters in order of number and by function. By id: its number, and the past of one that was redriven.

A place is tailer, partition and position. `placed` has the places of letters, each with the id; `gone` the places whose
letter was removed; `folded` how many of these are not known one by one any more; `ever` how many places a partition had
in all. `rooms` has the number of letters of each function and tenant, and `book` the sum of them.
"""

from __future__ import annotations

from ..redis.script_flags import grows, reads, settles
from ..redis.sort_keys import EACH

#: The keys of every script, in this order.
KEYS = (
    *("letters", "payloads", "order", "functions", "counts", "numbers", "moving"),
    *("pasts", "pasts_at", "placed", "gone", "folded", "ever", "book", "rooms"),
)

_NAMED = "\n".join(f"local {name} = KEYS[{place}]" for place, name in enumerate(KEYS, 1))

#: Removes a letter. `stays`: its place counts as one that had a letter. Answers whether there was one.
_FORGET = (
    EACH
    + _NAMED
    + """
local function room_of(own, tenant) return cjson.encode({own, tenant}) end
local function counted(room, by)
  if redis.call('HINCRBY', rooms, room, by) <= 0 then redis.call('HDEL', rooms, room) end
  redis.call('HINCRBY', book, 'in rooms', by)
end
local function partition_of(place) return string.sub(place, 1, -20) end
local function forget(number, stays)
  local text = redis.call('HGET', letters, number)
  if not text then return false end
  local letter = cjson.decode(text)
  local id, own, place = letter[1], letter[2], letter[3]
  redis.call('HDEL', letters, number)
  redis.call('HDEL', payloads, number)
  redis.call('ZREM', order, number)
  redis.call('ZREM', functions, own .. '\\0\\1' .. string.format('%019.0f', tonumber(number)))
  if redis.call('HINCRBY', counts, own, -1) <= 0 then redis.call('HDEL', counts, own) end
  counted(room_of(own, letter[7]), -1)
  redis.call('HDEL', numbers, id)
  redis.call('SREM', moving, number)
  if place ~= '' then
    redis.call('ZREM', placed, place .. id)
    if stays then
      redis.call('ZADD', gone, 0, place)
    else
      redis.call('HINCRBY', ever, partition_of(place), -1)
    end
  end
  return true, id, place
end
"""
)

# Goes with 0.3.0: nodes that know of no rooms write letters, and the sum is not their number; they are counted anew.
_COUNT = """
if tonumber(redis.call('HGET', book, 'in rooms') or 0) ~= redis.call('HLEN', letters) then
  local sums, first = {}, 0
  redis.call('DEL', rooms)
  redis.call('HSET', book, 'in rooms', 0)
  repeat
    local page = redis.call('ZRANGE', order, first, first + 999)
    for _, text in ipairs(#page > 0 and redis.call('HMGET', letters, unpack(page)) or {}) do
      local letter = cjson.decode(text)
      local room = room_of(letter[2], letter[7])
      sums[room] = (sums[room] or 0) + 1
    end
    first = first + 1000
  until #page < 1000
  for room, sum in pairs(sums) do counted(room, sum) end
end
"""

#: ARGV: the most letters of a room; of each letter its id, function, place, text, payload and tenant. Answers the ids
#: of those for which there is no room.
ADD = grows(
    _FORGET
    + _COUNT
    + """
local refused = {}
local function add(at)
  local id, own, place, room = ARGV[at], ARGV[at + 1], ARGV[at + 2], room_of(ARGV[at + 1], ARGV[at + 5])
  local former = redis.call('HGET', numbers, id)
  if former then
    forget(former, false)
  elseif tonumber(redis.call('HGET', rooms, room) or 0) >= tonumber(ARGV[1]) then
    refused[#refused + 1] = id
    return
  end
  counted(room, 1)
  local number = string.format('%.0f', redis.call('HINCRBY', book, 'number', 1))
  redis.call('HSET', letters, number, ARGV[at + 3])
  redis.call('HSET', payloads, number, ARGV[at + 4])
  redis.call('ZADD', order, number, number)
  redis.call('ZADD', functions, 0, own .. '\\0\\1' .. string.format('%019.0f', tonumber(number)))
  redis.call('HINCRBY', counts, own, 1)
  redis.call('HSET', numbers, id, number)
  if place ~= '' then
    redis.call('ZADD', placed, 0, place .. id)
    if redis.call('ZREM', gone, place) == 0 then redis.call('HINCRBY', ever, partition_of(place), 1) end
  end
end
for at = 2, #ARGV, 6 do add(at) end
return refused
"""
)

#: ARGV: functions, each with a tenant. Answers how many letters each room has.
HELD = reads(
    _NAMED
    + """
local answer = {}
for at = 1, #ARGV, 2 do
  answer[#answer + 1] = redis.call('HGET', rooms, cjson.encode({ARGV[at], ARGV[at + 1]})) or '0'
end
return answer
"""
)

#: ARGV: most places of a partition that are known one by one; now, and the time since which pasts are kept (0 for both:
#: no pasts are given); how many numbers; the numbers; of each past its id and text. Answers how many letters there
#: were.
REMOVE = settles(
    _FORGET
    + """
local count, partitions = 0, {}
for at = 5, 4 + tonumber(ARGV[4]) do
  local was, id, place = forget(ARGV[at], true)
  if was then
    count = count + 1
    redis.call('HDEL', pasts, id)
    redis.call('ZREM', pasts_at, id)
    if place ~= '' then partitions[partition_of(place)] = true end
  end
end
for partition in pairs(partitions) do
  local low, high = '[' .. partition, '(' .. partition .. '\\255'
  local many = redis.call('ZLEXCOUNT', gone, low, high)
  if many > tonumber(ARGV[1]) then
    local kept = many - math.floor(tonumber(ARGV[1]) / 2)
    local first = redis.call('ZRANGEBYLEX', gone, low, high, 'LIMIT', kept, 1)[1]
    local folds = redis.call('ZREMRANGEBYLEX', gone, low, first and '(' .. first or high)
    redis.call('HINCRBY', folded, partition, folds)
  end
end
for at = 5 + tonumber(ARGV[4]), #ARGV, 2 do
  redis.call('HSET', pasts, ARGV[at], ARGV[at + 1])
  redis.call('ZADD', pasts_at, ARGV[2], ARGV[at])
end
if ARGV[2] ~= '0' then
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', pasts_at, '-inf', '(' .. ARGV[3], 'LIMIT', 0, 1000)) do
    if redis.call('HEXISTS', numbers, id) == 0 then
      redis.call('HDEL', pasts, id)
      redis.call('ZREM', pasts_at, id)
    end
  end
end
return count
"""
)

#: ARGV: 1 to mark or 0, numbers.
MARK = settles(
    _NAMED
    + """
for at = 2, #ARGV do
  if ARGV[1] == '0' then
    redis.call('SREM', moving, ARGV[at])
  elseif redis.call('HEXISTS', letters, ARGV[at]) == 1 then
    redis.call('SADD', moving, ARGV[at])
  end
end
"""
)

#: ARGV: the way to look (function, ids, moving or all), above which number, how many; a function or ids. Answers of
#: each letter, by number: its number, text, past, and whether it is marked.
FIND = reads(
    _NAMED
    + """
local found, above, limit = {}, tonumber(ARGV[2]), tonumber(ARGV[3])
if ARGV[1] == 'function' then
  local begin = ARGV[4] .. '\\0\\1'
  local low = '(' .. begin .. string.format('%019.0f', above)
  for _, each in ipairs(redis.call('ZRANGEBYLEX', functions, low, '(' .. begin .. '\\255', 'LIMIT', 0, limit)) do
    found[#found + 1] = string.format('%.0f', tonumber(string.sub(each, -19)))
  end
elseif ARGV[1] == 'all' then
  found = redis.call('ZRANGEBYSCORE', order, '(' .. ARGV[2], '+inf', 'LIMIT', 0, limit)
else
  local candidates = {}
  if ARGV[1] == 'moving' then candidates = redis.call('SMEMBERS', moving) end
  for at = 4, #ARGV do candidates[#candidates + 1] = redis.call('HGET', numbers, ARGV[at]) or nil end
  for _, number in ipairs(candidates) do
    if tonumber(number) > above then found[#found + 1] = number end
  end
  table.sort(found, function(one, other) return tonumber(one) < tonumber(other) end)
end
local answer = {}
for place, number in ipairs(found) do
  if place > limit then break end
  local text = redis.call('HGET', letters, number)
  answer[#answer + 1] = number
  answer[#answer + 1] = text
  answer[#answer + 1] = redis.call('HGET', pasts, cjson.decode(text)[1]) or ''
  answer[#answer + 1] = redis.call('SISMEMBER', moving, number)
end
return answer
"""
)

#: ARGV: about how many bytes, numbers. Answers the payloads of the first ones, of one at least; nothing for letters
#: that are gone.
PAYLOADS = reads(
    _NAMED
    + """
local answer, left = {}, tonumber(ARGV[1])
for at = 2, #ARGV do
  local payload = redis.call('HGET', payloads, ARGV[at])
  left = left - #(payload or '')
  if at > 2 and left < 0 then break end
  answer[#answer + 1] = payload
end
return answer
"""
)

#: ARGV: the partition as a member begins, the first position and the end, most of them (0: only their number). Answers
#: whether those from the first on are all known; then their number, or the places.
PLACES = reads(
    _NAMED
    + """
local begin = ARGV[1]
local low, high = '[' .. begin .. ARGV[2], '(' .. begin .. ARGV[3]
if redis.call('HGET', folded, begin) then
  local lowest = redis.call('ZRANGEBYLEX', gone, '[' .. begin, '(' .. begin .. '\\255', 'LIMIT', 0, 1)[1]
  if not lowest or ARGV[2] < string.sub(lowest, -19) then return {0} end
end
if ARGV[4] == '0' then
  return {1, redis.call('ZLEXCOUNT', placed, low, high) + redis.call('ZLEXCOUNT', gone, low, high)}
end
return {
  1,
  redis.call('ZRANGEBYLEX', placed, low, high, 'LIMIT', 0, ARGV[4]),
  redis.call('ZRANGEBYLEX', gone, low, high, 'LIMIT', 0, ARGV[4]),
}
"""
)
