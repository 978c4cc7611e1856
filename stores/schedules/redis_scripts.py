"""The Redis scripts of schedules, and their keys. A row is a JSON array of texts (version, whether it is paused,
decided, runs, passed over, next_at, whether a file keeps it), so that floats stay as they were written. A schedule's
definition is kept by version, as long as a row or a run has that version (`uses`). A run is a member of a sorted set by
position, and of another one by schedule and instant, so that no run is there twice."""

from __future__ import annotations

from ..redis.script_flags import grows, reads, settles

#: The keys of every script, in this order.
KEYS = (
    *("rows", "names", "next", "over", "definitions", "uses"),
    *("runs", "instants", "book", "changes"),
)

_NAMED = "\n".join(f"local {name}_key = KEYS[{place}]" for place, name in enumerate(KEYS, 1))

_ROW = (
    _NAMED
    + """
local VERSION, PAUSED, DECIDED, RUNS, PASSED, NEXT_AT, KEPT = 1, 2, 3, 4, 5, 6, 7
local VERSION_OF_RUN = 3
local function whole(number) return string.format('%.0f', number) end
local function row_of(name)
  local text = redis.call('HGET', rows_key, name)
  return text and cjson.decode(text) or nil
end
-- A row, and where it is found: by when it is due, or among those that are over and nobody keeps.
local function keep(name, row)
  redis.call('HSET', rows_key, name, cjson.encode(row))
  redis.call('ZREM', next_key, name)
  redis.call('ZREM', over_key, name)
  if tonumber(row[NEXT_AT]) > 0 then
    redis.call('ZADD', next_key, row[NEXT_AT], name)
  elseif row[PAUSED] == '0' and row[KEPT] == '0' then
    redis.call('ZADD', over_key, row[DECIDED], name)
  end
end
local function use(version, count)
  if redis.call('HINCRBY', uses_key, version, count) <= 0 then
    redis.call('HDEL', uses_key, version)
    redis.call('HDEL', definitions_key, version)
  end
end
local function forget(name, row)
  redis.call('HDEL', rows_key, name)
  for _, key in ipairs({names_key, next_key, over_key}) do redis.call('ZREM', key, name) end
  use(row[VERSION], -1)
end
-- A run at the end; nothing when there is one of this instant. `begin` is the schedule and the instant as a member.
local added
local function run(begin, name, version, instant, at, by_hand)
  local one = redis.call('ZRANGEBYLEX', instants_key, '[' .. begin, '(' .. begin .. '\\255', 'LIMIT', 0, 1)
  if one[1] then return nil end
  local position = redis.call('HINCRBY', book_key, 'end', 1) - 1
  local text = cjson.encode({whole(position), name, version, instant, at, by_hand})
  redis.call('ZADD', runs_key, whole(position), text)
  redis.call('ZADD', instants_key, 0, begin .. string.format('%019.0f', position))
  use(version, 1)
  added = position + 1
  return position
end
local function tell()
  if added then redis.call('XADD', changes_key, 'MAXLEN', 1, whole(added) .. '-0', 'v', '') end
end
"""
)

#: ARGV: name, expected version, most schedules, the definition, then the row without its version. Answers the version;
#: 0 when another one was found, -1 when there are too many.
PUT = grows(
    _ROW
    + """
local before = row_of(ARGV[1])
if (before and before[VERSION] or '0') ~= ARGV[2] then return 0 end
if not before and redis.call('HLEN', rows_key) >= tonumber(ARGV[3]) then return -1 end
local version = whole(redis.call('HINCRBY', book_key, 'version', 1))
redis.call('HSET', definitions_key, version, ARGV[4])
use(version, 1)
redis.call('ZADD', names_key, 0, ARGV[1])
keep(ARGV[1], {version, ARGV[5], ARGV[6], ARGV[7], ARGV[8], ARGV[9], ARGV[10]})
if before then use(before[VERSION], -1) end
return tonumber(version)
"""
)

#: ARGV: name. Answers whether there was such a schedule.
REMOVE = settles(
    _ROW
    + """
local row = row_of(ARGV[1])
if row then forget(ARGV[1], row) end
return row and 1 or 0
"""
)

#: ARGV: "name" and a name, "all" and a limit, or "due", now and a limit. Answers the time to look again, then the row
#: and the definition of each.
FIND = reads(
    _ROW
    + """
local names, later = {ARGV[2]}, '0'
if ARGV[1] == 'all' then names = redis.call('ZRANGE', names_key, 0, tonumber(ARGV[2]) - 1) end
if ARGV[1] == 'due' then
  names = redis.call('ZRANGEBYSCORE', next_key, '-inf', ARGV[2], 'LIMIT', 0, ARGV[3])
  later = redis.call('ZRANGEBYSCORE', next_key, '(' .. ARGV[2], '+inf', 'WITHSCORES', 'LIMIT', 0, 1)[2] or '0'
end
local answer = {later}
for _, name in ipairs(names) do
  local text = redis.call('HGET', rows_key, name)
  if text then
    answer[#answer + 1] = text
    answer[#answer + 1] = redis.call('HGET', definitions_key, cjson.decode(text)[VERSION])
  end
end
return answer
"""
)

#: ARGV: name, version, decided before and after, more that were passed over, next_at, when; then of each run its member
#: and its instant. Answers whether the row had this version and `decided`.
FIRE = grows(
    _ROW
    + """
local row = row_of(ARGV[1])
if not row or row[VERSION] ~= ARGV[2] or row[DECIDED] ~= ARGV[3] then return 0 end
row[DECIDED], row[PASSED], row[NEXT_AT] = ARGV[4], whole(tonumber(row[PASSED]) + tonumber(ARGV[5])), ARGV[6]
row[RUNS] = whole(tonumber(row[RUNS]) + (#ARGV - 7) / 2)
keep(ARGV[1], row)
for at = 8, #ARGV, 2 do run(ARGV[at], ARGV[1], row[VERSION], ARGV[at + 1], ARGV[7], '0') end
tell()
return 1
"""
)

#: ARGV: name, the run as a member, its instant, when. Answers its position and version, or nothing.
RUN = grows(
    _ROW
    + """
local row = row_of(ARGV[1])
local position = row and run(ARGV[2], ARGV[1], row[VERSION], ARGV[3], ARGV[4], '1')
tell()
return position and {position, row[VERSION]} or {}
"""
)

#: ARGV: position, how many, about how many bytes of payload. Answers runs, then versions with their definitions.
READ = reads(
    _ROW
    + """
local texts, versions, said, size = {}, {}, {}, 0
for _, text in ipairs(redis.call('ZRANGEBYSCORE', runs_key, ARGV[1], '+inf', 'LIMIT', 0, ARGV[2])) do
  local version = cjson.decode(text)[VERSION_OF_RUN]
  said[version] = said[version] or redis.call('HGET', definitions_key, version)
  size = size + math.floor(string.match(said[version], '"payload":"([^"]*)"'):len() * 3 / 4)
  if #texts > 0 and size > tonumber(ARGV[3]) then break end
  texts[#texts + 1] = text
  versions[version] = said[version]
end
local told = {}
for version, text in pairs(versions) do
  told[#told + 1] = version
  told[#told + 1] = text
end
return {texts, told}
"""
)

#: ARGV: the schedule as a member begins, how many. Answers its newest runs.
LAST = reads(
    _ROW
    + """
local answer = {}
local high, low = '(' .. ARGV[1] .. '\\255', '[' .. ARGV[1]
for place, member in ipairs(redis.call('ZREVRANGEBYLEX', instants_key, high, low, 'LIMIT', 0, ARGV[2])) do
  local position = whole(tonumber(string.sub(member, -19)))
  answer[place] = redis.call('ZRANGEBYSCORE', runs_key, position, position)[1]
end
return answer
"""
)

#: Answers the first position that is kept, or nothing, and the end.
BOUNDS = reads(
    _ROW
    + """
local first = redis.call('ZRANGE', runs_key, 0, 0, 'WITHSCORES')[2]
return {first or '', redis.call('HGET', book_key, 'end') or '0'}
"""
)

#: ARGV: the position below which runs may be removed, how many at most. Answers the first of them.
TRIMMABLE = reads(
    _ROW
    + """
return redis.call('ZRANGEBYSCORE', runs_key, '-inf', '(' .. ARGV[1], 'LIMIT', 0, ARGV[2])
"""
)

#: ARGV: of each run its text and its member. Answers how many were removed.
TRIM = settles(
    _ROW
    + """
local went = 0
for at = 1, #ARGV, 2 do
  if redis.call('ZREM', runs_key, ARGV[at]) == 1 then
    redis.call('ZREM', instants_key, ARGV[at + 1])
    use(cjson.decode(ARGV[at])[3], -1)
    went = went + 1
  end
end
return went
"""
)

#: ARGV: the time before which schedules were over, how many at most. Answers how many were forgotten.
FORGET = settles(
    _ROW
    + """
local over = redis.call('ZRANGEBYSCORE', over_key, '-inf', '(' .. ARGV[1], 'LIMIT', 0, ARGV[2])
for _, name in ipairs(over) do forget(name, row_of(name)) end
return #over
"""
)
