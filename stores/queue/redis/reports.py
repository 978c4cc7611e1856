"""Reports of a queue in Redis, about itself and its items."""

from __future__ import annotations

import asyncio
import json
import struct
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from ....model.claim import State
from ....model.tries import Try
from ....model.workload import Headers, Kind
from ...redis.server import RedisServer
from ..ageing import folded
from ..ids import created_at, id_number
from ..kinds import Kinds
from ..lifecycle import TERMINAL, next_trigger
from ..queue import Ageing, Status, Tally
from .kinds import RedisKinds
from .script import queue_script

#: A task as it is stored: state, flags, lane, kind, size, attempts, crashes, throttles, fence, at; and the indexes of
#: some of these.
TASK = struct.Struct(">BBIIIIHHQQ")
FLAGS: Final = 1
KIND: Final = 3
ATTEMPTS: Final = 5
CRASHES: Final = 6
AT: Final = 9
#: Most tasks that one step of a tally counts: it blocks the server meanwhile.
STEP = 1000
#: Most tallies if the rows do not add up: a scan shows some rows twice if the hash shrinks meanwhile.
TALLIES = 3

#: The bytes of a text that is no id; and an id that is never given, to be sent in its place.
NOBODY, NO_ID = b"", b"\xff" * 8

_STATUS = queue_script(
    "no-writes",
    """
local found = {}
local ids = cut(ARGV[2], 8)
for i, task in ipairs(fields('tasks', ids)) do
  if not task then
    found[i] = ''
  else
    local reason, progress, till = '', '', ''
    if has(byte(task, 2), 32) then
      reason = call('HGET', base .. 'reasons', ids[i]) or ''
      progress = call('HGET', base .. 'progress', ids[i]) or ''
    end
    if byte(task, 1) >= 2 and byte(task, 1) <= 4 then
      till = call('ZSCORE', base .. 'leases', sub(task, 31)) or ''
    end
    found[i] = {task, reason, progress, till}
  end
end
return found
""",
)
#: ARGV: time, kinds (4 bytes each). Answers how many items of each wait by themselves.
_HELD = queue_script(
    "no-writes",
    """
local found = {}
for i, kind in ipairs(cut(ARGV[2], 4)) do found[i] = call('ZCARD', base .. 'kind:' .. kind) end
return found
""",
)
_DUE = queue_script(
    "no-writes",
    """
local found, most = {}, tonumber(ARGV[2])
for _, lane in ipairs(call('ZRANGEBYSCORE', base .. 'heads', '-inf', string.format('%.0f', now))) do
  local count, till = 0, string.format('%.0f', now)
  for _, kind in ipairs(call('ZRANGEBYSCORE', base .. 'firsts:' .. lane, '-inf', till, 'LIMIT', 0, most)) do
    count = min(most, count + call('ZCOUNT', base .. 'kind:' .. kind, '-inf', till))
    if count == most then break end
  end
  found[#found + 1] = lane
  found[#found + 1] = count
end
return found
""",
)
#: Answers the time, then for each lane in which an item waits or was tried: its number, when its oldest item was due
#: (empty: none waits), and the highest attempt (empty: none was spent).
_AGEING = queue_script(
    "no-writes",
    """
local found, seen = {now}, {}
local function add(lane, oldest)
  if seen[lane] then return end
  seen[lane] = true
  local highest = call('ZRANGE', base .. 'tried:' .. lane, -1, -1, 'WITHSCORES')
  found[#found + 1] = lane
  found[#found + 1] = oldest
  found[#found + 1] = highest[2] or ''
end
local waiting = call('ZRANGE', base .. 'heads', 0, -1, 'WITHSCORES')
for i = 1, #waiting, 2 do add(waiting[i], waiting[i + 1]) end
for _, lane in ipairs(call('SMEMBERS', base .. 'tried')) do add(lane, '') end
return found
""",
)
# Nothing is removed during a tally, for a minute at most, in case the process that makes it dies.
_TALLY = queue_script(
    "allow-oom",
    """
call('SET', base .. 'tallying', '1', 'EX', 60)
local facts = fields('meta', {'ms', 'serial', 'taken', 'forgotten'})
return {facts[1] or '0', facts[2] or '-1', facts[3] or '0', facts[4] or '0'}
""",
)
_STEP = queue_script(
    "allow-oom",
    """
call('SET', base .. 'tallying', '1', 'EX', 60)
local ms, serial = tonumber(ARGV[3]), tonumber(ARGV[4])
local high, low = floor(ms / 1024), (ms % 1024) * 4194304 + serial
local step = call('HSCAN', base .. 'tasks', ARGV[2], 'COUNT', tonumber(ARGV[5]))
local counts, answer = {}, {}
for i = 1, #step[2], 2 do
  local id = step[2][i]
  local top = int4(id, 1)
  if top < high or (top == high and int4(id, 5) <= low) then
    local state = byte(step[2][i + 1], 1)
    counts[state] = (counts[state] or 0) + 1
  end
end
for state, count in pairs(counts) do
  answer[#answer + 1] = state
  answer[#answer + 1] = count
end
return {step[1], answer}
""",
)


def id_bytes(text: str) -> bytes:
    """An id as it is stored; NOBODY for text that is no id."""
    number = id_number(text)
    return NOBODY if number < 0 else number.to_bytes(8, "big")


def blob(ids: Sequence[bytes]) -> bytes:
    """Ids as one argument. A text that is no id becomes an id that is never given."""
    return b"".join(each or NO_ID for each in ids)


async def statuses(server: RedisServer, base: str, kinds: RedisKinds, ids: Sequence[str]) -> list[Status | None]:
    """Returns a Status for each id, or None."""
    found = await server.run(_STATUS, [base], -1, blob([*map(id_bytes, ids)]), about="a status")
    rows = [row and (TASK.unpack(row[0]), *row[1:]) for row in found]
    if any(row and row[0][KIND] not in kinds.kinds for row in rows):
        await kinds.look()
    return [_status(each, kinds, row) for each, row in zip(ids, rows, strict=True)]


def _status(id: str, kinds: Kinds, row: Any) -> Status | None:
    if not row:
        return None
    (number, _, _, kind, _, attempts, crashes, _, _, at), reason, progress, until = row
    state = State(number)
    return Status(
        id=id,
        state=state,
        kind=kinds.kinds[kind],
        attempts=attempts,
        crashes=crashes,
        created_at=created_at(id_number(id)),
        due=(next_trigger(state, at, float(until or 0)) or 0) / 1e6,
        ended_at=at / 1e6 if state in TERMINAL else 0.0,
        reason=reason.decode(),
        progress=progress.decode(),
    )


async def tries(server: RedisServer, base: str, ids: Sequence[str]) -> dict[str, tuple[Try, ...]]:
    """The past attempts of those ids that have any."""
    if not ids:
        return {}
    found = await server.call("HMGET", f"{base}tries", *map(id_bytes, ids), about="attempts")
    return {
        each: tuple(Try(*json.loads(line)) for line in lines.split(b"\n"))
        for each, lines in zip(ids, found, strict=True)
        if lines
    }


async def headers(server: RedisServer, base: str, ids: Sequence[str]) -> dict[str, Headers]:
    """The headers of those ids that are live and have any."""
    if not ids:
        return {}
    found = await server.call("HMGET", f"{base}extras", *map(id_bytes, ids), about="headers")
    told = {each: json.loads(extra)[1] for each, extra in zip(ids, found, strict=True) if extra}
    return {each: tuple((name, value) for name, value in pairs) for each, pairs in told.items() if pairs}


async def counts(server: RedisServer, base: str) -> dict[str, int]:
    """Number of items by the state's name."""
    flat = await server.call("HGETALL", f"{base}counts", about="counts")
    found = {int(state): int(count) for state, count in zip(flat[::2], flat[1::2], strict=True)}
    return {state.label: found.get(int(state), 0) for state in State}


async def due(server: RedisServer, base: str, kinds: RedisKinds, moment: int, most: int) -> dict[str, int]:
    """Number of items that could be leased now, by function."""
    flat = await server.run(_DUE, [base], moment, most, about="a look for due workloads")
    lanes = {int.from_bytes(lane, "big"): count for lane, count in zip(flat[::2], flat[1::2], strict=True)}
    if not lanes.keys() <= kinds.lanes.keys():
        await kinds.look()
    found: Counter[str] = Counter()
    for lane, count in lanes.items():
        found[kinds.lanes[lane][0]] += count
    return dict(+found)


async def ageing(server: RedisServer, base: str, kinds: RedisKinds, moment: int) -> list[Ageing]:
    """Ages of waiting work, by function and priority."""
    now, *flat = await server.run(_AGEING, [base], moment, about="the ages of waiting workloads")
    lanes = [int.from_bytes(lane, "big") for lane in flat[::3]]
    if not kinds.lanes.keys() >= set(lanes):
        await kinds.look()
    ages = [max(0.0, now - float(oldest)) / 1e6 if oldest else 0.0 for oldest in flat[1::3]]
    return folded(kinds.lanes, zip(lanes, ages, map(int, (tried or 0 for tried in flat[2::3])), strict=True))


async def tally(server: RedisServer, base: str) -> Tally:
    """Counts the rows that were there when it began, one by one; nothing is removed meanwhile."""
    for attempt in range(TALLIES):
        found = await _tally(server, base)
        if sum(found.states.values()) == found.taken - found.forgotten:
            break
        await asyncio.sleep(0.1 * attempt)
    await server.call("DEL", f"{base}tallying", about="a tally")
    return found


async def _tally(server: RedisServer, base: str) -> Tally:
    *last, taken, forgotten = map(int, await server.run(_TALLY, [base], -1, about="a tally"))
    states: Counter[int] = Counter()
    cursor = b"0"
    while True:
        cursor, step = await server.run(_STEP, [base], -1, cursor, *last, STEP, about="a tally")
        for state, count in zip(step[::2], step[1::2], strict=True):
            states[state] += count
        if cursor == b"0":
            return Tally(taken, forgotten, {state.label: states[int(state)] for state in State})


async def held(server: RedisServer, base: str, kinds: Mapping[int, Kind]) -> dict[str, int]:
    """Number of items of each tenant that wait."""
    numbers = b"".join(number.to_bytes(4, "big") for number in kinds)
    found: Counter[str] = Counter()
    counts = await server.run(_HELD, [base], -1, numbers, about="the room of tenants")
    for kind, count in zip(kinds.values(), counts, strict=True):
        found[kind.tenant] += int(count)
    return dict(found)
