"""Scripts for claims on the queue in Redis: looking for due items, claiming them, and prolonging and ending leases.

A claim is the lease of all items that were handed out together. When a holder renews only some of them the claim is
split, so that the others end in their time.
"""

from __future__ import annotations

from typing import Final

from .script import AT_HOME, queue_script
from .submit import SUBMIT_BODY

#: First value in the answer of LOOK and CLAIM; the time follows. MOVED: the server is another one. QUIET: nothing is
#: leased until a time. CLAIMED, NOTHING: whether items were claimed. MORE: more lanes are due than the claim knew of.
QUIET, CLAIMED, NOTHING, MORE = 1, 2, 3, 4
#: Index of the claimed tasks in CLAIM's answer.
TASKS: Final = 5

_AWAKE = """
if tonumber(facts[3] or '0') > now then return {1, now, tonumber(facts[3])} end
"""

#: ARGV: time, home, position. Answers when the next lane has a due item, when the next lease ends (both as text, empty:
#: never), and the lanes that have due items now. Reads one index of each and writes nothing.
LOOK = queue_script(
    "no-writes",
    AT_HOME
    + _AWAKE
    + """
local later = call('ZRANGEBYSCORE', base .. 'heads', string.format('(%.0f', now), '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
local lease = call('ZRANGE', base .. 'leases', 0, 0, 'WITHSCORES')
return {
  3, now, later[2] or '', lease[2] or '',
  concat(call('ZRANGEBYSCORE', base .. 'heads', '-inf', string.format('%.0f', now)))
}
""",
)

#: ARGV: time, home, position, lease (µs), most items and bytes, the lanes that are thought to have due items, number of
#: cells and the demand of each, the closed kinds, then visits: lane, limit, cell. Answer after CLAIMED: fence,
#: position, ids, tasks, payloads, extras of some, number of unreadable tasks, and the lanes that have due items; after
#: NOTHING: when the next visited kind may have a due item (as text, empty: never), and these lanes; after MORE: these
#: lanes. Sixteen tenants of a lane share the items taken of it, or four if these are fewer than sixteen; if these
#: tenants have less, the claim goes on with the next ones.
_CLAIM = (
    AT_HOME
    + _AWAKE
    + """
local lease, total, room = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local function due_now()
  return call('ZRANGEBYSCORE', base .. 'heads', '-inf', string.format('%.0f', now))
end
local thought = {}
for _, lane in ipairs(cut(ARGV[7], 4)) do thought[lane] = true end
for _, lane in ipairs(due_now()) do
  if not thought[lane] then return {4, now, concat(due_now())} end
end
local wanted, at = {}, 8 + tonumber(ARGV[8])
for i = 9, at do wanted[i - 8] = tonumber(ARGV[i]) end
local shut, any_shut = {}, false
for _, kind in ipairs(cut(ARGV[at + 1], 4)) do
  shut[kind] = true
  any_shut = true
end
local ids, tasks, visits, unread = {}, {}, {}, 0
for i = at + 2, #ARGV, 3 do
  visits[#visits + 1] = {lane = ARGV[i], limit = tonumber(ARGV[i + 1]), cell = tonumber(ARGV[i + 2])}
  for _, kind in ipairs(call('ZRANGEBYSCORE', base .. 'soon:' .. ARGV[i], '-inf', string.format('%.0f', now))) do
    place(kind, ARGV[i])
  end
end

local open = true
local turn = meta('turn') + 2
-- At most so many items of a kind; how many.
local function take(each, kind, most)
  local key = base .. 'kind:' .. kind
  local found = call('ZRANGE', key, 0, most - 1, 'WITHSCORES')
  local due = {}
  for i = 1, #found, 2 do
    if tonumber(found[i + 1]) > now then break end
    due[#due + 1] = found[i]
  end
  local gone, before = 0, #ids
  for i, task in ipairs(fields('tasks', due)) do
    if not task or #task ~= 38 then
      unread = unread + 1
    else
      local size = int4(task, 11)
      if size > room and #ids > 0 then
        open = false
        break
      end
      room = room - size
      ids[#ids + 1] = due[i]
      tasks[#tasks + 1] = task
      if room <= 0 then open = false end
    end
    gone = i
    if not open then break end
  end
  if gone > 0 then call('ZREMRANGEBYRANK', key, 0, gone - 1) end
  if gone > 0 or open then place(kind, each.lane, turn) end
  wanted[each.cell] = wanted[each.cell] - (#ids - before)
  return #ids - before
end
-- Kinds whose turn it is, without the shut ones.
local function next_kinds(lane, most)
  local ring = base .. 'ring:' .. lane
  if not any_shut then return call('ZRANGE', ring, 0, most - 1) end
  local some, from = {}, 0
  while true do
    local part = call('ZRANGE', ring, from, from + 199)
    for _, kind in ipairs(part) do
      if not shut[kind] then some[#some + 1] = kind end
      if #some == most then return some end
    end
    if #part < 200 then return some end
    from = from + 200
  end
end
local function visit(each, most)
  while most > 0 and open do
    local some = next_kinds(each.lane, most >= 16 and 16 or min(4, most))
    if #some == 0 then return end
    local share = most >= 16 and floor(most / #some) or math.ceil(most / #some)
    for _, kind in ipairs(some) do
      if most <= 0 or not open then return end
      most = most - take(each, kind, min(share, most))
    end
  end
end
for pass = 1, 2 do
  for _, each in ipairs(visits) do
    local most = min(wanted[each.cell], total - #ids)
    if pass == 1 then most = min(most, each.limit) end
    visit(each, most)
  end
end
if #ids == 0 then
  local soonest = ''
  for _, each in ipairs(visits) do
    local next = call('ZRANGE', base .. 'soon:' .. each.lane, 0, 0, 'WITHSCORES')[2]
    if next and (soonest == '' or tonumber(next) < tonumber(soonest)) then soonest = next end
  end
  tell()
  return {3, now, soonest, concat(due_now())}
end

call('HSET', base .. 'meta', 'turn', turn)
local fence = next_fence()
local claim = be8(call('HINCRBY', base .. 'meta', 'claim', 1))
local position = call('HINCRBY', base .. 'meta', 'position', 1)
if lease > meta('longest') then call('HSET', base .. 'meta', 'longest', lease) end
local tail = be8(fence) .. claim
local rows, extras, hands = {}, {}, {}
for i, task in ipairs(tasks) do
  rows[2 * i - 1], rows[2 * i] = ids[i], char(2) .. sub(task, 2, 22) .. tail
  moved(byte(task, 1), 2)
  local flags = byte(task, 2)
  if flags % 2 == 1 or has(flags, 32) then
    extras[#extras + 1] = i - 1
    extras[#extras + 1] = call('HGET', base .. 'extras', ids[i]) or ''
    extras[#extras + 1] = call('HGET', base .. 'progress', ids[i]) or ''
  end
end
many('HSET', 'tasks', rows)
local listed = concat(ids)
call('HSET', base .. 'claims', claim, listed)
call('HSET', base .. 'out', claim, #ids)
call('ZADD', base .. 'leases', now + lease, claim)
tell()
local payloads = fields('payloads', ids)
for i = 1, #ids do payloads[i] = payloads[i] or '' end
return {2, now, fence, position, listed, concat(tasks), payloads, extras, unread, concat(due_now())}
"""
)
CLAIM = queue_script("allow-oom", _CLAIM)

#: ARGV: time, number of SUBMIT's arguments without its time, these arguments, then those of CLAIM without its time.
#: Answers with both answers; that of the claim is empty if nothing was submitted.
SUBMIT_AND_CLAIM = queue_script(
    "",
    f"""
local function submit(ARGV) {SUBMIT_BODY} end
local function claim(ARGV) {_CLAIM} end
local count = tonumber(ARGV[2])
local first, second = {{ARGV[1]}}, {{ARGV[1]}}
for i = 3, 2 + count do first[i - 1] = ARGV[i] end
for i = 3 + count, #ARGV do second[i - 1 - count] = ARGV[i] end
local submitted = submit(first)
if submitted[1] < 0 then return {{submitted, {{}}}} end
moves, lanes, kinds = {{}}, {{}}, {{}}
return {{submitted, claim(second)}}
""",
)

#: ARGV: time, fence, lease (µs), phase, ids. Answers the position, then for each id whether it is still leased, and
#: whether it is to be cancelled.
RENEW = queue_script(
    "allow-oom",
    """
local fence, lease, phase, ids = be8(tonumber(ARGV[2])), tonumber(ARGV[3]), tonumber(ARGV[4]), cut(ARGV[5], 8)
local held, cancel, claims, seen = {}, {}, {}, {}
local tasks = fields('tasks', ids)
for i, id in ipairs(ids) do
  local task = tasks[i]
  held[i], cancel[i] = '0', '0'
  if task and sub(task, 23, 30) == fence and byte(task, 1) >= 2 and byte(task, 1) <= 4 then
    held[i] = '1'
    if has(byte(task, 2), 2) then cancel[i] = '1' end
    if not seen[id] then
      seen[id] = true
      local claim = sub(task, 31)
      claims[claim] = claims[claim] or {}
      claims[claim][#claims[claim] + 1] = i
    end
  end
end
local rows = {}
for claim, items in pairs(claims) do
  local till = max(now + lease, tonumber(call('ZSCORE', base .. 'leases', claim) or '0'))
  local mine = claim
  if #items < tonumber(call('HGET', base .. 'out', claim) or '0') then
    mine = be8(call('HINCRBY', base .. 'meta', 'claim', 1))
    local listed = {}
    for _, i in ipairs(items) do listed[#listed + 1] = ids[i] end
    call('HSET', base .. 'claims', mine, concat(listed))
    call('HSET', base .. 'out', mine, #items)
    back({[claim] = #items})
  end
  call('ZADD', base .. 'leases', till, mine)
  for _, i in ipairs(items) do
    local state = byte(tasks[i], 1)
    if state < phase then moved(state, phase) end
    if state < phase or mine ~= claim then
      rows[#rows + 1] = ids[i]
      rows[#rows + 1] = char(max(state, phase)) .. sub(tasks[i], 2, 30) .. mine
    end
  end
end
local position = meta('position')
if next(claims) then
  many('HSET', 'tasks', rows)
  if lease > meta('longest') then call('HSET', base .. 'meta', 'longest', lease) end
  position = call('HINCRBY', base .. 'meta', 'position', 1)
  tell()
end
return {position, concat(held), concat(cancel)}
""",
)

#: ARGV: time, latest end of leases to be ended (µs), most claims. Items whose lease is over wait again, first of their
#: kinds, or are cancelled if that was asked for; their fence rises, so that the former holder is refused. Answers how
#: many claims ended, and the claims that cannot be read, which are tried again a minute later. A clock that was set
#: back prolongs no lease beyond the longest one.
END_LEASES = queue_script(
    "allow-oom",
    """
local latest = now + meta('longest')
local beyond = string.format('(%.0f', latest)
for _, claim in ipairs(call('ZRANGEBYSCORE', base .. 'leases', beyond, '+inf', 'LIMIT', 0, 1000)) do
  call('ZADD', base .. 'leases', latest, claim)
end
local over = call('ZRANGEBYSCORE', base .. 'leases', '-inf', string.format('%.0f', min(now, tonumber(ARGV[2]))),
  'LIMIT', 0, tonumber(ARGV[3]))
local troubles = {}
local fence = #over > 0 and be8(next_fence()) or ''
for _, claim in ipairs(over) do
  local listed = call('HGET', base .. 'claims', claim)
  if not listed or #listed % 8 ~= 0 then
    troubles[#troubles + 1] = string.format('claim %.0f', int8(claim .. '        ', 1))
    call('ZADD', base .. 'leases', now + 60000000, claim)
  else
    local ids, rows, gone, flags = cut(listed, 8), {}, {}, {}
    for i, task in ipairs(fields('tasks', ids)) do
      local state = task and #task == 38 and byte(task, 1) or 0
      if state >= 2 and state <= 4 and sub(task, 31) == claim then
        local id = ids[i]
        rows[#rows + 1] = id
        if has(byte(task, 2), 2) then
          moved(state, 12)
          settled(id, task)
          gone[#gone + 1] = id
          flags[#flags + 1] = byte(task, 2)
          call('HSET', base .. 'reasons', id, 'cancelled')
          rows[#rows + 1] = char(12, with(byte(task, 2), 32)) .. sub(task, 3, 22) .. fence .. be8(now)
        else
          local after = int4(task, 15) > 0 and 1 or 0
          local trigger = first(task)
          moved(state, after)
          put(task, trigger, id)
          rows[#rows + 1] = char(after) .. sub(task, 2, 22) .. fence .. be8(trigger)
        end
      end
    end
    many('HSET', 'tasks', rows)
    ended(gone, flags)
    call('HDEL', base .. 'claims', claim)
    call('HDEL', base .. 'out', claim)
    call('ZREM', base .. 'leases', claim)
  end
end
tell()
return {#over - #troubles, troubles}
""",
)
