"""Ends of items in the queue in Redis: settlements by fence, cancellations, and removal of ended items. They run even
if the server is out of memory, because an end frees some."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import Any

import msgspec

from ....model.claim import Settle, State
from ....model.tries import KEPT, REASON_KEPT
from ..lifecycle import LEASED
from ..queue import PROGRESS, REASON
from ..shared_settlements import Succeeded
from .reports import NO_ID, id_bytes
from .script import queue_script

_END = struct.Struct(">8sBQIHH").pack
_encode = msgspec.json.Encoder().encode
#: The highest number in two bytes.
_MOST = 0xFFFF
#: The byte for "no" in the script's answer.
_NO = ord("0")

#: ARGV: time, fence of the others, the items that succeeded as 16 bytes each (id, fence), the others as 25 bytes each,
#: then for each of these reason, progress and attempt. Answers for each id, in that order, whether it is refused; and
#: whether items wait now.
SETTLE = queue_script(
    "allow-oom",
    f"""
local KEPT = {KEPT}
"""
    """
local fence, at = be8(tonumber(ARGV[2])), be8(now)
local refused, claims, waits = {}, {}, false
local function left(task)
  local claim = sub(task, 31)
  claims[claim] = (claims[claim] or 0) + 1
end

local plain, ids, rows, over, flags, done = cut(ARGV[3], 16), {}, {}, {}, {}, {}
for i, each in ipairs(plain) do ids[i] = sub(each, 1, 8) end
for i, task in ipairs(fields('tasks', ids)) do
  local id, state = ids[i], task and sub(task, 23, 30) == sub(plain[i], 9) and byte(task, 1) or -1
  refused[i] = '1'
  if state >= 2 and state <= 4 then
    refused[i] = '0'
    if not done[id] then
      done[id] = true
      rows[#rows + 1] = id
      rows[#rows + 1] = char(10) .. sub(task, 2, 30) .. at
      over[#over + 1] = id
      flags[#flags + 1] = byte(task, 2)
      moved(state, 10)
      left(task)
      settled(id, task)
    end
  elseif state == 10 then
    refused[i] = '0'
  end
end
many('HSET', 'tasks', rows)
ended(over, flags)

local others = cut(ARGV[4], 25)
over, flags = {}, {}
for n, other in ipairs(others) do
  local id, asked = sub(other, 1, 8), byte(other, 9)
  local task = call('HGET', base .. 'tasks', id)
  local state = task and sub(task, 23, 30) == fence and byte(task, 1) or -1
  local flag = state >= 0 and byte(task, 2) or 0
  if asked < 2 and has(flag, 2) then asked = 12 end
  local place = #ids + n
  if state < 2 or state > 4 or (asked >= 2 and asked <= 4) then
    refused[place] = (state == asked and (asked < 2 or asked > 4)) and '0' or '1'
  else
    refused[place] = '0'
    local reason, progress, try = ARGV[2 + 3 * n], ARGV[3 + 3 * n], ARGV[4 + 3 * n]
    local lane, kept = sub(task, 3, 6), at
    moved(state, asked)
    left(task)
    if reason ~= '' then call('HSET', base .. 'reasons', id, reason) end
    if progress ~= '' then call('HSET', base .. 'progress', id, progress) end
    if reason ~= '' or progress ~= '' then flag = with(flag, 32) end
    if asked < 2 then
      local delay = int8(other, 10)
      local trigger = delay > 0 and now + delay or first(task)
      kept = be8(trigger)
      put(task, trigger, id)
      waits = true
      if try ~= '' then
        flag = with(flag, 16)
        local tries = call('HGET', base .. 'tries', id)
        tries = (tries and tries .. '\\n' or '') .. string.format('[%.6f,', now / 1000000) .. try
        local _, count = string.gsub(tries, '\\n', '\\n')
        if count >= KEPT then tries = string.gsub(tries, '^[^\\n]*\\n', '', 1) end
        call('HSET', base .. 'tries', id, (tries))
      end
    end
    local charged = be4(max(int4(task, 15), int4(other, 18)))
      .. sub(be4(max(int2(task, 19), int2(other, 22))), 3) .. sub(be4(max(int2(task, 21), int2(other, 24))), 3)
    call('HSET', base .. 'tasks', id, char(asked, flag) .. sub(task, 3, 14) .. charged .. fence .. kept)
    if asked < 2 and int4(charged, 1) > 0 then
      tried(id, lane, int4(charged, 1))
    elseif asked > 4 then
      settled(id, task)
      over[#over + 1] = id
      flags[#flags + 1] = flag
    end
  end
end
ended(over, flags)
back(claims)
tell()
return {concat(refused), (waits or freed) and 1 or 0}
""",
)

#: ARGV: time, ids. Answers a letter for each: cancelled, requested, ended, unknown; and whether items wait now.
CANCEL = queue_script(
    "allow-oom",
    """
local answers = {}
for i, id in ipairs(cut(ARGV[2], 8)) do
  local task = call('HGET', base .. 'tasks', id)
  if not task then
    answers[i] = 'u'
  elseif byte(task, 1) > 4 then
    answers[i] = 'e'
  elseif byte(task, 1) > 1 then
    answers[i] = 'r'
    call('HSET', base .. 'tasks', id, sub(task, 1, 1) .. char(with(byte(task, 2), 2)) .. sub(task, 3))
  else
    answers[i] = 'c'
    local flag = with(byte(task, 2), 32)
    settled(id, task)
    if has(flag, 64) then
      flag = flag - 64
      moves[100] = (moves[100] or 0) - 1
    else
      call('ZREM', base .. 'kind:' .. sub(task, 7, 10), id)
      kinds[sub(task, 7, 10)] = sub(task, 3, 6)
    end
    moved(byte(task, 1), 12)
    call('HSET', base .. 'reasons', id, 'cancelled')
    call('HSET', base .. 'tasks', id, char(12, flag) .. sub(task, 3, 30) .. be8(now))
    ended({id}, {flag})
  end
end
tell()
return {concat(answers), freed and 1 or 0}
""",
)

#: Answers the time.
NOW = queue_script("no-writes", "return now")

#: ARGV: time, the time (µs) before which what ended is old, most ended items to keep, most to remove at once. Answers
#: how many were removed.
SWEEP = queue_script(
    "allow-oom",
    """
if call('EXISTS', base .. 'tallying') == 1 then return 0 end
local oldest, most = tonumber(ARGV[2]), tonumber(ARGV[4])
local excess = call('LLEN', base .. 'ended') - tonumber(ARGV[3])
local ids = call('LRANGE', base .. 'ended', 0, most - 1)
local gone, told, tried, deduped, names, passed, seen = {}, {}, {}, {}, {}, 0, {}
for i, task in ipairs(fields('tasks', ids)) do
  if task and byte(task, 1) > 4 and not seen[ids[i]] then
    if i > excess and int8(task, 31) >= oldest then break end
    local flag = byte(task, 2)
    seen[ids[i]] = true
    gone[#gone + 1] = ids[i]
    moves[byte(task, 1)] = (moves[byte(task, 1)] or 0) - 1
    if has(flag, 32) then told[#told + 1] = ids[i] end
    if has(flag, 16) then tried[#tried + 1] = ids[i] end
    if has(flag, 8) then deduped[#deduped + 1] = ids[i] end
  end
  passed = i
end
if passed == 0 then return 0 end
call('LTRIM', base .. 'ended', passed, -1)
for _, name in ipairs(fields('deduped', deduped)) do
  if name then names[#names + 1] = name end
end
many('HDEL', 'dedupe', names)
many('HDEL', 'deduped', deduped)
many('HDEL', 'reasons', told)
many('HDEL', 'progress', told)
many('HDEL', 'tries', tried)
many('HDEL', 'tasks', gone)
call('HINCRBY', base .. 'meta', 'forgotten', #gone)
tell()
return #gone
""",
)


def settlement(group: Sequence[Succeeded], fence: int, others: Sequence[Settle]) -> list[Any]:
    """The arguments of SETTLE: successes of any claims, and other ends of one claim."""
    plain: list[bytes] = []
    for number, ids in group:
        theirs = number.to_bytes(8, "big")
        plain += [(id_bytes(each) or NO_ID) + theirs for each in ids]
    return [fence, b"".join(plain), *_ends(others)]


def refusals(group: Sequence[Succeeded], others: Sequence[Settle], signs: bytes) -> list[list[str]]:
    """The ids of each claim that SETTLE refused, by the bytes in its answer; refusals of `others` are in the last
    list."""
    if b"1" not in signs:
        return [[] for _ in group]
    sign = iter(signs)
    answers = [[each for each in ids if next(sign) != _NO] for _, ids in group]
    answers[-1] += [other.id for other in others if next(sign) != _NO]
    return answers


def _ends(others: Sequence[Settle]) -> list[Any]:
    columns = b"".join(
        _END(
            id_bytes(each.id) or NO_ID,
            each.state,
            max(0, math.ceil(each.delay * 1e6)),
            each.attempts,
            min(each.crashes, _MOST),
            min(each.throttles, _MOST),
        )
        for each in others
    )
    texts: list[Any] = [columns]
    for each in others:
        went = each.outcome and each.state not in LEASED and each.state < State.ENQUEUED
        texts += (
            _bytes(each.reason[:REASON]),
            _bytes(each.progress[:PROGRESS]),
            _encode((each.outcome, _text(each.reason[:REASON_KEPT])))[1:] if went else b"",
        )
    return texts


def _bytes(text: str) -> bytes:
    return text.encode(errors="replace")


def _text(text: str) -> str:
    return text if text.isascii() else _bytes(text).decode()
