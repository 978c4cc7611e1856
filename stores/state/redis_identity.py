"""The identity of a server: is it the one, with the data, that gave the streams to their owners? After a failover, a
restore or a lost second it may lack writes: then no stream is taken for the lease of a source, and no former owner goes
on.

`home` in the data has the run of the server (`run_id`) that wrote it last, the highest version that ownership ever
gave, and the time until which no stream is taken; every process keeps the highest version that it saw. A run that
`home` does not have is

    a plain restart     of a durable server, seen by a process that knew the run before it, heard of that after the new
                        one was started, and misses nothing that it saw: there is no wait
    not known           a durable server, seen by a process that did not know the run before: no stream is taken for
                        the lease of a source; owners go on, and a process that misses something will find that out
    anything else       a promoted replica, a snapshot that was loaded, a server that may lose a second, data older
                        than a process remembers, or an operator's command (`HSET {PREFIX}:state:home run ''`): no
                        stream is taken, and all epochs rise, also in the ledger's rows of waiting items, so that
                        owners begin anew (`stores/state/sqlite_restored.py` says why)

Every write of ownership looks again, in its own script, so that a failover behind connections that stay is seen too.
"""

from __future__ import annotations

from ..ownership.epochs import EPOCHS_BY_CLOCK, EPOCHS_FROM

#: The keys that a script over HOME begins with.
KEYS = ("home", "ownership", "checkpoints", "ledger", "control", "control:changes")

#: Reasons of a server that moved whose data lacks what a process saw of it.
OLDER = (b"it has nothing of what it had", b"its data is older than what was seen")

#: KEYS begin with: home, ownership's rows, the checkpoints' epochs, the ledger's heads, control's book and its changes.
#: ARGV begin with: 1 for a durable server, the wait in microseconds, the highest version that the caller saw, the run
#: that it knew, and the seconds since it heard of that run (-1: too many). Answers begin with the microseconds for
#: which no stream is taken yet, the reason why the server counts as moved just now (or nothing), and the run.
HOME = (
    (
        """
local VERSION, EPOCH, HOLDER, LEASE = 1, 2, 3, 4 -- of ownership's rows
local function whole(number) return string.format('%.0f', number) end
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]

-- Rows of what waits to be started are started by owners of what is due that come after this epoch. Their row is there
-- from then on, free, so that the next one is given a higher epoch whatever the clock says.
local function bar(sources, epoch)
  local found, fields = false, '^(%[%d+, [23]' .. string.rep(', [^,]+', 6) .. ', )%d+'
  for source in pairs(sources) do
    local rows, waiting, low = KEYS[4] .. ':rows:' .. source, KEYS[4] .. ':waiting:' .. source, '-'
    while low do
      local members, barred = redis.call('ZRANGEBYLEX', waiting, low, '+', 'LIMIT', 0, 1000), {}
      low = members[1] and '(' .. members[#members]
      for place, row in ipairs(low and redis.call('HMGET', rows, unpack(members)) or {}) do
        local text, stood = string.gsub(row or '', fields, '%1' .. epoch)
        if stood == 1 then
          barred[#barred + 1] = members[place]
          barred[#barred + 1] = text
        end
      end
      if barred[1] then
        found = true
        redis.call('HSET', rows, unpack(barred))
      end
    end
  end
  local due = 'due\\0\\1\\0\\1'
  if found and redis.call('HSETNX', KEYS[2], due, cjson.encode({whole(now), epoch, '', '0.0', '[]'})) == 1 then
    redis.call('ZADD', KEYS[2] .. ':names', 0, due)
  end
end

-- Raises every epoch, above all that the data knows and all that were given since. Answers the highest version.
local function supersede(mark)
  local rows, heads = redis.call('HGETALL', KEYS[2]), redis.call('HGETALL', KEYS[4])
  local highest, sources, owned, failing = 0, {}, {}, {}
  for i = 1, #rows, 2 do
    highest = math.max(highest, tonumber(cjson.decode(rows[i + 1])[EPOCH]))
    local stop = string.find(rows[i], '\\0\\1', 1, true)
    local source, partition = string.sub(rows[i], 1, stop - 1), string.sub(rows[i], stop + 2, -3)
    sources[#sources + 1] = partition == '' and source or source .. '/' .. partition
    owned[source] = true
  end
  for _, source in ipairs(sources) do
    highest = math.max(highest, tonumber(redis.call('HGET', KEYS[3], source) or '0'))
  end
  for i = 1, #heads, 2 do
    local source = string.sub(heads[i], 1, string.find(heads[i], '\\0\\1', 1, true) - 1)
    failing[string.gsub(source, '%z\\2', '\\0')] = true
    heads[i + 1] = owned[source] and heads[i + 1] or false
    if heads[i + 1] then highest = math.max(highest, tonumber(string.match(heads[i + 1], '^%d+'))) end
  end
  local epoch = whole(math.max(highest + 1, math.min(math.floor(now / 1000000) - EPOCHS_FROM, EPOCHS_BY_CLOCK)))
  for i = 1, #rows, 2 do
    local row = cjson.decode(rows[i + 1])
    local version = math.max(tonumber(row[VERSION]) + 1, now)
    mark = math.max(mark, version)
    row[VERSION], row[EPOCH] = whole(version), epoch
    redis.call('HSET', KEYS[2], rows[i], cjson.encode(row))
  end
  for _, source in ipairs(sources) do
    if redis.call('HEXISTS', KEYS[3], source) == 1 then redis.call('HSET', KEYS[3], source, epoch) end
  end
  for i = 1, #heads, 2 do
    if heads[i + 1] then redis.call('HSET', KEYS[4], heads[i], epoch .. string.match(heads[i + 1], ' .*')) end
  end
  bar(failing, epoch)
  -- Who knows a version of control that is not there any more hears of what is.
  local version = tonumber(redis.call('HGET', KEYS[5], 'version') or '0')
  if version > 0 then
    version = whole(math.max(version + 1, math.floor(now / 1000000) - EPOCHS_FROM))
    redis.call('HSET', KEYS[5], 'version', version)
    redis.call('XADD', KEYS[6], 'MAXLEN', 1, version .. '-0', 'v', '')
  end
  return mark
end

local run
local function settle_in()
  local info = redis.call('INFO', 'server')
  run = string.match(info, 'run_id:(%w+)')
  local known = redis.call('HMGET', KEYS[1], 'run', 'mark', 'quiet')
  local seen, mark, quiet = tonumber(ARGV[3]), tonumber(known[2] or '0'), tonumber(known[3] or '0')
  local moved = ''
  if not known[1] then
    if seen > 0 then moved = 'it has nothing of what it had' end
  elseif known[1] == '' then
    moved = 'put back from a copy, as somebody said'
  elseif seen > mark then
    moved = 'its data is older than what was seen'
  elseif known[1] ~= run then
    local former = string.match(redis.call('INFO', 'replication'), 'master_replid2:(%w+)') or ''
    local up = tonumber(string.match(info, 'uptime_in_seconds:(%d+)'))
    if string.find(former, '[^0]') then
      moved = 'a promoted replica, or a snapshot that was loaded'
    elseif ARGV[1] ~= '1' then
      moved = 'it was started anew, and may have lost its last second'
    elseif known[1] ~= ARGV[4] or up > tonumber(ARGV[5]) then
      quiet = now + tonumber(ARGV[2])
      redis.call('HSET', KEYS[1], 'quiet', whole(quiet))
    end
  end
  if moved ~= '' then
    quiet = now + tonumber(ARGV[2])
    mark = supersede(math.max(now, seen, mark))
    redis.call('HSET', KEYS[1], 'quiet', whole(quiet), 'mark', whole(mark))
  end
  if known[1] ~= run then redis.call('HSET', KEYS[1], 'run', run) end
  return math.max(0, quiet - now), moved
end
local wait, moved = settle_in()
"""
    )
    .replace("EPOCHS_FROM", str(EPOCHS_FROM))
    .replace("EPOCHS_BY_CLOCK", str(EPOCHS_BY_CLOCK))
)
