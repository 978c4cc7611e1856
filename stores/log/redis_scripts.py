"""The Redis scripts of the log, and their keys. A partition has two keys of one hash tag: its records, a stream, and
its bounds, a hash.

Each entry of the stream is one batch of records (`batch.py`). Its id is `<first position>-<number of records>`: so ids
rise, an entry's id tells which positions it has, and the hash counts on when all entries are gone: no position is ever
given twice.
"""

from __future__ import annotations

from ..redis.server import Script

#: KEYS: records, bounds. ARGV: time, then for each batch how many records and their columns. Answers the first.
APPEND = Script("""
local total = 0
for i = 2, #ARGV, 2 do total = total + tonumber(ARGV[i]) end
local at = redis.call('HINCRBY', KEYS[2], 'end', total) - total
local first = at
for i = 2, #ARGV, 2 do
  redis.call('XADD', KEYS[1], string.format('%d-%d', at, tonumber(ARGV[i])), 't', ARGV[1], 'c', ARGV[i + 1])
  at = at + tonumber(ARGV[i])
end
return first
""")

#: KEYS: records, bounds. ARGV: position, limit, bytes. Answers the start; then of each batch its first position, time
#: and columns. Batches are taken one by one while they are large, more at once while they are small.
READ = Script("""
local start = tonumber(redis.call('HGET', KEYS[2], 'start') or '0')
local position = math.max(tonumber(ARGV[1]), start)
local limit, most = tonumber(ARGV[2]), tonumber(ARGV[3])
local answer = {start}
local records, bytes, step = 0, 0, 1
local from = redis.call('XREVRANGE', KEYS[1], string.format('%d', position), '-', 'COUNT', 1)
local begin = from[1] and from[1][1] or '-'
while true do
  local entries = redis.call('XRANGE', KEYS[1], begin, '+', 'COUNT', step)
  local size = 0
  for _, entry in ipairs(entries) do
    local first, count = string.match(entry[1], '(%d+)-(%d+)')
    local stop = tonumber(first) + tonumber(count)
    size = size + #entry[2][4]
    if stop > position then
      answer[#answer + 1] = first
      answer[#answer + 1] = entry[2][2]
      answer[#answer + 1] = entry[2][4]
      records = records + stop - math.max(tonumber(first), position)
      bytes = bytes + #entry[2][4]
      if records >= limit or bytes >= most then return answer end
    end
  end
  if #entries < step then return answer end
  begin = '(' .. entries[#entries][1]
  step = size < 16384 * step and math.min(64, step * 2) or 1
end
""")

#: KEYS: records, bounds. ARGV: the position below which records are removed, most entries to remove. Answers how many
#: entries were removed. A batch stays until all of it may go, and whole nodes of a stream go at once: the bounds tell
#: which records are to be read.
TRIM = Script("""
local start = tonumber(redis.call('HGET', KEYS[2], 'start') or '0')
local stop = tonumber(redis.call('HGET', KEYS[2], 'end') or '0')
local before = math.min(tonumber(ARGV[1]), stop)
if before > start then redis.call('HSET', KEYS[2], 'start', string.format('%d', before)) end
before = math.max(before, start)
local keep = string.format('%d-0', before)
local last = redis.call('XREVRANGE', KEYS[1], string.format('%d', before), '-', 'COUNT', 1)
if last[1] then
  local first, count = string.match(last[1][1], '(%d+)-(%d+)')
  if tonumber(first) + tonumber(count) > before then keep = last[1][1] end
end
return redis.call('XTRIM', KEYS[1], 'MINID', '~', keep, 'LIMIT', ARGV[2])
""")

#: KEYS: bounds. ARGV: a sign for a partition that has none yet. Answers its sign; empty: nothing was appended yet.
LIFE = Script("""
if redis.call('EXISTS', KEYS[1]) == 0 then return '' end
redis.call('HSETNX', KEYS[1], 'life', ARGV[1])
return redis.call('HGET', KEYS[1], 'life')
""")

#: KEYS: the catalogue, a hash of streams. ARGV: stream, partitions. Raises the number, never lowers it.
CREATE = Script("""
local now = tonumber(redis.call('HGET', KEYS[1], ARGV[1]) or '0')
if tonumber(ARGV[2]) > now then redis.call('HSET', KEYS[1], ARGV[1], ARGV[2]) end
return 1
""")
