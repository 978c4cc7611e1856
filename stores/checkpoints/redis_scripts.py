"""The Redis scripts of checkpoints, and their keys. One hash has the epochs of all sources, a field each. The marks of
a source are a hash, a field for each partition; its endings are one sorted set for all partitions.

A mark is position and handed_out, nineteen digits each, the length of `ahead` in ten, `ahead` and the book. An ending
is its partition, its first and last position likewise, and its counts as JSON.
"""

from __future__ import annotations

from ..redis.script_flags import reads, settles
from ..redis.sort_keys import EACH, MINUS

#: KEYS: epochs, marks. ARGV: source, epoch. Answers 1 and the marks, or 0 and the newer epoch.
OPEN = settles("""
local newest = redis.call('HGET', KEYS[1], ARGV[1])
if newest and tonumber(newest) > tonumber(ARGV[2]) then return {0, newest} end
if newest ~= ARGV[2] then redis.call('HSET', KEYS[1], ARGV[1], ARGV[2]) end
return {1, redis.call('HGETALL', KEYS[2])}
""")

#: KEYS: epochs, marks, endings. ARGV: source, epoch, how many marks; of each its partition, the partition as a member
#: begins, the mark and how many endings; of each ending its first, last and counts. Answers 1 and of each mark how many
#: endings its partition has, or 0 and the newest epoch.
#: Endings that are written again may be cut differently, no more: they are as they were up to the last position there,
#: and one range may have grown. So a range that ends at or below that position is passed over, and one that goes on in
#: the same way is merged with the last.
COMMIT = settles(
    MINUS
    + EACH
    + """
local newest = redis.call('HGET', KEYS[1], ARGV[1])
if newest ~= ARGV[2] then return {0, newest or 'none'} end

-- The one way in which all of a range ended, if it did.
local function plain(first, last, counts)
  local fate, count = string.match(counts, '^{"(%d+)": (%d+)}$')
  return fate and tonumber(count) == minus(last, first) + 1 and fate or nil
end

local at, marks, answer = 4, {}, {1}
for place = 1, tonumber(ARGV[3]) do
  local partition, begin, mark, endings = ARGV[at], ARGV[at + 1], ARGV[at + 2], tonumber(ARGV[at + 3])
  at = at + 4
  local known = redis.call('HGET', KEYS[2], partition)
  if known then
    local one, other = string.sub(known, 20, 38), string.sub(mark, 20, 38)
    local kept = string.sub(mark, 1, 19) >= string.sub(known, 1, 19) and mark or known
    mark = string.sub(kept, 1, 19) .. (other > one and other or one) .. string.sub(kept, 39)
  end
  if mark ~= known then
    marks[#marks + 1] = partition
    marks[#marks + 1] = mark
  end
  answer[place + 1] = 0
  if endings > 0 then
    local member = redis.call('ZREVRANGEBYLEX', KEYS[3], '(' .. begin .. '\\255', '[' .. begin, 'LIMIT', 0, 1)[1]
    local added, first, last, counts = {}, nil, nil, nil
    if member then
      first, last = string.sub(member, #begin + 1, #begin + 19), string.sub(member, #begin + 20, #begin + 38)
      counts = string.sub(member, #begin + 39)
    end
    for _ = 1, endings do
      local from, to, ended = ARGV[at], ARGV[at + 1], ARGV[at + 2]
      at = at + 3
      if not last or to > last then
        local fate = plain(from, to, ended)
        local goes_on = last and fate and minus(from, last) <= 1 and fate == plain(first, last, counts)
        if goes_on then
          from = first
          ended = string.format('{"%s": %.0f}', fate, minus(to, first) + 1)
        end
        if last and from == first then
          if #added > 0 then
            added[#added], added[#added - 1] = nil, nil
          else
            redis.call('ZREM', KEYS[3], member)
          end
        end
        first, last, counts = from, to, ended
        added[#added + 1] = 0
        added[#added + 1] = begin .. from .. to .. ended
      end
    end
    each(2, added, 'ZADD', KEYS[3])
    answer[place + 1] = redis.call('ZLEXCOUNT', KEYS[3], '[' .. begin, '(' .. begin .. '\\255')
  end
end
each(2, marks, 'HSET', KEYS[2])
return answer
"""
)

#: KEYS: endings. ARGV: how the partition's members begin, the first position and the end. Answers members.
ENDINGS = reads("""
local begin = ARGV[1]
local former = redis.call('ZREVRANGEBYLEX', KEYS[1], '(' .. begin .. ARGV[2] .. '\\255', '[' .. begin, 'LIMIT', 0, 1)[1]
local from = former or begin
return redis.call('ZRANGEBYLEX', KEYS[1], '[' .. from, '(' .. begin .. ARGV[3])
""")

#: KEYS: endings. ARGV: the first and last of the members to merge, how many they are, and the members that replace
#: them. Answers 1 when it was done, 0 when their number has changed meanwhile.
THIN = settles(
    EACH
    + """
local from, to = '[' .. ARGV[1], '[' .. ARGV[2]
if redis.call('ZLEXCOUNT', KEYS[1], from, to) ~= tonumber(ARGV[3]) then return 0 end
redis.call('ZREMRANGEBYLEX', KEYS[1], from, to)
local added = {}
for place = 4, #ARGV do
  added[#added + 1] = 0
  added[#added + 1] = ARGV[place]
end
each(2, added, 'ZADD', KEYS[1])
return 1
"""
)
