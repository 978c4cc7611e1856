"""Gates, quotas, the function registry, tokens and acts in Redis: a hash each, the first four under one version number;
and members of the fleet.

Waiters are woken by a Redis stream whose only entry has the newest version.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
from collections.abc import Sequence

from ...foundation.clock import SYSTEM_CLOCK, Clock
from ...model.act import FORGOTTEN_AT_ONCE, MOST_SHOWN, Act, act_from_text, act_to_text
from ...model.function_spec import FunctionSpec, spec_from_dict, spec_to_dict
from ...model.gate import Gate, gate_from_text, gate_to_text
from ...model.limits import KEPT_CHANGES, Quota, QuotaChange, Snapshot, quotas_from_text, quotas_to_text
from ...model.member import ORDERS_KEPT, FleetMember, MemberOrder
from ...model.token import Token, token_from_text, token_to_text
from ..redis.fleet import BELONG
from ..redis.script_flags import grows, reads, settles
from ..redis.sort_keys import packed
from ..state.redis_server import HELD, StateServer

#: KEYS: book, changes, and the hash that is changed. Answers the version, which rises when something changed. It begins
#: with 1.
_CHANGE = """
local function change(changed)
  local version = tonumber(redis.call('HGET', KEYS[1], 'version') or '1')
  if changed then
    version = version + 1
    redis.call('HSET', KEYS[1], 'version', string.format('%.0f', version))
    redis.call('XADD', KEYS[2], 'MAXLEN', 1, string.format('%.0f-0', version), 'v', '')
  end
  return version
end
"""
#: ARGV: field, value; without a value the field is removed.
_PUT = settles(
    _CHANGE
    + """
if not ARGV[2] then return change(redis.call('HDEL', KEYS[3], ARGV[1]) == 1) end
local version = tonumber(redis.call('HGET', KEYS[1], 'version') or '1') + 1
redis.call('HSET', KEYS[3], ARGV[1], string.format('%.0f ', version) .. ARGV[2])
return change(true)
"""
)
#: ARGV: name, token; without a token the name is removed. A token that is there is not replaced.
_TOKEN = settles(
    _CHANGE
    + """
if not ARGV[2] then return change(redis.call('HDEL', KEYS[3], ARGV[1]) == 1) end
return change(redis.call('HSETNX', KEYS[3], ARGV[1], ARGV[2]) == 1)
"""
)
#: KEYS: book, acts, moments. ARGV: the moment, the act. Answers its number.
_BEGIN_ACT = grows("""
local number = string.format('%.0f', redis.call('HINCRBY', KEYS[1], 'acts', 1))
redis.call('HSET', KEYS[2], number, ARGV[2])
redis.call('HSET', KEYS[3], number, ARGV[1])
return tonumber(number)
""")
#: KEYS: acts, ends. ARGV: number, outcome.
_END_ACT = settles("""
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1 then redis.call('HSETNX', KEYS[2], ARGV[1], ARGV[2]) end
return 1
""")
#: KEYS: book, acts, ends. ARGV: below which number (0: all), how many. Answers numbers, acts and ends.
_ACTS = reads("""
local newest = tonumber(redis.call('HGET', KEYS[1], 'acts') or '0')
local oldest = tonumber(redis.call('HGET', KEYS[1], 'acts_forgotten') or '0') + 1
local number = tonumber(ARGV[1])
if number == 0 or number > newest then number = newest + 1 end
local found = {}
for at = number - 1, math.max(oldest, number - tonumber(ARGV[2])), -1 do
  local name = string.format('%.0f', at)
  local act = redis.call('HGET', KEYS[2], name)
  if act then found[#found + 1] = {at, act, redis.call('HGET', KEYS[3], name) or ''} end
end
return found
""")
#: KEYS: book, acts, ends, moments. ARGV: since, most, how many at once.
_FORGET_ACTS = settles("""
local newest = tonumber(redis.call('HGET', KEYS[1], 'acts') or '0')
local first = tonumber(redis.call('HGET', KEYS[1], 'acts_forgotten') or '0') + 1
local gone = 0
while first <= newest and gone < tonumber(ARGV[3]) do
  local name = string.format('%.0f', first)
  local at = tonumber(redis.call('HGET', KEYS[4], name) or '0')
  if at >= tonumber(ARGV[1]) and first > newest - tonumber(ARGV[2]) then break end
  for key = 2, 4 do redis.call('HDEL', KEYS[key], name) end
  redis.call('HSET', KEYS[1], 'acts_forgotten', name)
  first, gone = first + 1, gone + 1
end
return gone
""")
#: The time of the server, in scripts.
_NOW = """
local time = redis.call('TIME')
local now = tonumber(time[1]) + tonumber(time[2]) / 1000000
"""
#: KEYS: members, their ends, orders. ARGV: id, row, lease. Answers the orders that it has.
_TELL = grows(
    _NOW
    + """
for _, id in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now)) do
  redis.call('HDEL', KEYS[1], id)
  redis.call('ZREM', KEYS[2], id)
end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
redis.call('ZADD', KEYS[2], string.format('%.3f', now + tonumber(ARGV[3])), ARGV[1])
return redis.call('HVALS', KEYS[3])
"""
)
#: KEYS: members, their ends.
_MEMBERS = reads(
    _NOW
    + """
local found = {}
for _, id in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '(' .. string.format('%.3f', now), '+inf')) do
  local row = redis.call('HGET', KEYS[1], id)
  if row then found[#found + 1] = row end
end
return found
"""
)
#: KEYS: members, their ends. ARGV: id.
_FORGET_MEMBER = settles("redis.call('HDEL', KEYS[1], ARGV[1]) return redis.call('ZREM', KEYS[2], ARGV[1])")
#: KEYS: orders, their moments. ARGV: id, row, seconds for which an order is kept.
_PUT_ORDER = grows(
    _NOW
    + """
for _, id in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now - tonumber(ARGV[3]))) do
  redis.call('HDEL', KEYS[1], id)
  redis.call('ZREM', KEYS[2], id)
end
if redis.call('HSETNX', KEYS[1], ARGV[1], ARGV[2]) == 1 then
  redis.call('ZADD', KEYS[2], string.format('%.3f', now), ARGV[1])
end
return 1
"""
)
#: KEYS: orders. ARGV: id, answer.
_ANSWER_ORDER = settles("""
local row = redis.call('HGET', KEYS[1], ARGV[1])
if not row then return 0 end
local order = cjson.decode(row)
if order[4] ~= '' then return 0 end
order[4] = ARGV[2]
redis.call('HSET', KEYS[1], ARGV[1], cjson.encode(order))
return 1
""")
#: KEYS: orders. ARGV: id.
_ORDER = reads("return redis.call('HGET', KEYS[1], ARGV[1]) or ''")
#: ARGV: fields of gates, and the version of each. Those go that are still of these versions.
_END_GATES = settles(
    _CHANGE
    + """
local ended = 0
for at = 1, #ARGV, 2 do
  local held = redis.call('HGET', KEYS[3], ARGV[at])
  if held and string.match(held, '^%S+') == ARGV[at + 1] then ended = ended + redis.call('HDEL', KEYS[3], ARGV[at]) end
end
return change(ended > 0)
"""
)
#: ARGV: fields and values.
_REGISTER = grows(
    _CHANGE
    + """
local changed = false
for at = 1, #ARGV, 2 do
  if redis.call('HGET', KEYS[3], ARGV[at]) ~= ARGV[at + 1] then
    redis.call('HSET', KEYS[3], ARGV[at], ARGV[at + 1])
    changed = true
  end
end
return change(changed)
"""
)
#: KEYS: book, changes, versions of the quotas. ARGV: the version expected, how many are kept, the quotas, and the row.
#: Answers 0 where the quotas are of another version.
_QUOTAS = settles(
    _CHANGE
    + """
local before = redis.call('HGET', KEYS[1], 'quotas') or '0'
if before ~= ARGV[1] then return 0 end
local quotas = before ~= '0' and cjson.decode(redis.call('HGET', KEYS[3], before))[4] or '[]'
if quotas == ARGV[3] then return change(false) end
local version = change(true)
redis.call('HSET', KEYS[1], 'quotas', string.format('%.0f', version))
redis.call('HSET', KEYS[3], string.format('%.0f', version), ARGV[4])
local kept = redis.call('HKEYS', KEYS[3])
table.sort(kept, function(one, other) return tonumber(one) > tonumber(other) end)
for at = tonumber(ARGV[2]) + 1, #kept do redis.call('HDEL', KEYS[3], kept[at]) end
return version
"""
)
#: KEYS: book, gates, quotas from before they had versions, functions, versions of the quotas, tokens. ARGV: the version
#: that is known. Answers the version; then, if it is another one, the hashes and the newest version of the quotas.
_SNAPSHOT = reads("""
local version = redis.call('HGET', KEYS[1], 'version') or '1'
if version == ARGV[1] then return {version} end
local quotas = redis.call('HGET', KEYS[1], 'quotas') or '0'
return {version, redis.call('HGETALL', KEYS[2]), redis.call('HGETALL', KEYS[3]), redis.call('HGETALL', KEYS[4]),
  redis.call('HGETALL', KEYS[6]), {quotas, quotas ~= '0' and redis.call('HGET', KEYS[5], quotas) or ''}}
""")

#: KEYS: versions of the quotas.
_QUOTA_CHANGES = reads("return redis.call('HGETALL', KEYS[1])")


class RedisControl:
    """A Control store in the state on one server."""

    def __init__(self, server: StateServer, clock: Clock = SYSTEM_CLOCK) -> None:
        self._server = server
        self._clock = clock
        self._book, self._changes = server.key("control"), server.key("control", "changes")
        names = ("gates", "quotas", "functions", "tokens")
        self._gates, self._quotas, self._functions, self._tokens = (server.key("control", name) for name in names)
        self._quota_changes = server.key("control", "quota_changes")
        self._acts = server.key("control", "acts")
        self._act_ends, self._act_times = server.key("control", "act_ends"), server.key("control", "act_times")
        self._members = [server.key("control", "members"), server.key("control", "member_ends")]
        self._orders = [server.key("control", "orders"), server.key("control", "order_times")]
        self._gate_keys = [self._book, self._changes, self._gates]

    async def snapshot(self) -> Snapshot:
        found = await self._look(-1)
        assert found is not None
        return found

    async def _look(self, version: int) -> Snapshot | None:
        """The snapshot, if its version is another than `version`; else None."""
        keys = [self._book, self._gates, self._quotas, self._functions, self._quota_changes, self._tokens]
        now, *hashes = await self._server.run(_SNAPSHOT, keys, version, about="control")
        if not hashes:
            return None
        *hashes, (quotas_version, row) = hashes
        gates, quotas, functions, tokens = (sorted(each[1::2]) for each in hashes)
        before = [Quota(*json.loads(text.partition(b" ")[2])) for text in quotas]
        return Snapshot(
            int(now),
            sorted((_gate(text) for text in gates), key=lambda gate: gate.key),
            quotas_from_text(json.loads(row)[3]) if row else sorted(before, key=lambda quota: quota.key),
            sorted((spec_from_dict(json.loads(text)) for text in functions), key=lambda spec: spec.name),
            int(quotas_version),
            sorted((token_from_text(text) for text in tokens), key=lambda token: token.name),
        )

    async def wait(self, version: int, timeout: float) -> Snapshot | None:
        until = asyncio.get_running_loop().time() + timeout
        while (found := await self._look(version)) is None:
            held = min(HELD, until - asyncio.get_running_loop().time())
            if held <= 0:
                break
            block = ("XREAD", "BLOCK", max(1, int(held * 1000)), "STREAMS", self._changes, f"{version}-0")
            await self._server.wait(*block, about="control")
        return found

    async def put_gate(self, gate: Gate) -> int:
        field = _field(gate)
        text = gate_to_text(dataclasses.replace(gate, since=gate.since or self._clock.wall()))
        told = [] if gate.action == "resume" else [text]
        return int(await self._server.run(_PUT, self._gate_keys, field, *told, about="control"))

    async def end_gates(self, over: Sequence[Gate] = ()) -> int:
        told = [part for gate in over for part in (_field(gate), str(gate.version))]
        return int(await self._server.run(_END_GATES, self._gate_keys, *told, about="control"))

    async def put_quotas(self, change: QuotaChange, expected: int) -> int:
        text = quotas_to_text(change.quotas)
        row = json.dumps([change.who, change.why, change.at or self._clock.wall(), text])
        keys = [self._book, self._changes, self._quota_changes]
        return int(await self._server.run(_QUOTAS, keys, expected, KEPT_CHANGES, text, row, about="control"))

    async def quota_changes(self) -> list[QuotaChange]:
        flat = await self._server.run(_QUOTA_CHANGES, [self._quota_changes], about="control")
        found = [
            QuotaChange(int(version), who, why, at, tuple(quotas_from_text(text)))
            for version, row in zip(flat[::2], flat[1::2], strict=True)
            for who, why, at, text in [json.loads(row)]
        ]
        return sorted(found, key=lambda each: -each.version)

    async def register(self, functions: Sequence[FunctionSpec]) -> int:
        rows = [part for spec in functions for part in (spec.name, json.dumps(spec_to_dict(spec), sort_keys=True))]
        keys = [self._book, self._changes, self._functions]
        return int(await self._server.run(_REGISTER, keys, *rows, about="control"))

    async def put_token(self, token: Token) -> int:
        return await self._change_token(token.name, token_to_text(token))

    async def remove_token(self, name: str) -> int:
        return await self._change_token(name)

    async def begin_act(self, act: Act) -> int:
        keys = [self._book, self._acts, self._act_times]
        return int(await self._server.run(_BEGIN_ACT, keys, repr(act.at), act_to_text(act), about="control"))

    async def end_act(self, number: int, outcome: str) -> None:
        await self._server.run(_END_ACT, [self._acts, self._act_ends], number, outcome, about="control")

    async def acts(self, before: int = 0, limit: int = 100) -> list[Act]:
        keys = [self._book, self._acts, self._act_ends]
        rows = await self._server.run(_ACTS, keys, before, min(limit, MOST_SHOWN), about="control")
        return [act_from_text(int(number), text, outcome.decode()) for number, text, outcome in rows]

    async def forget_acts(self, since: float, most: int) -> int:
        keys = [self._book, self._acts, self._act_ends, self._act_times]
        told = (repr(since), most, FORGOTTEN_AT_ONCE)
        return int(await self._server.run(_FORGET_ACTS, keys, *told, about="control"))

    async def tell_member(self, member: FleetMember, lease: float) -> list[MemberOrder]:
        keys = [*self._members, self._orders[0]]
        rows = await self._server.run(_TELL, keys, member.id, json.dumps(member), repr(lease), about="control")
        orders = [MemberOrder(*json.loads(row)) for row in rows]
        return [each for each in orders if each.member == member.id and not each.answer]

    async def members(self) -> list[FleetMember]:
        rows = await self._server.run(_MEMBERS, self._members, about="control")
        return sorted(FleetMember(*json.loads(row)) for row in rows)

    async def forget_member(self, id: str) -> None:
        await self._server.run(_FORGET_MEMBER, self._members, id, about="control")

    async def put_order(self, order: MemberOrder) -> None:
        row = json.dumps(order)
        await self._server.run(_PUT_ORDER, self._orders, order.id, row, repr(ORDERS_KEPT), about="control")

    async def answer_order(self, id: str, answer: str) -> None:
        await self._server.run(_ANSWER_ORDER, self._orders[:1], id, answer, about="control")

    async def order(self, id: str) -> MemberOrder | None:
        row = await self._server.run(_ORDER, self._orders[:1], id, about="control")
        return MemberOrder(*json.loads(row)) if row else None

    async def belong(self, fleet: str) -> str:
        found: bytes = await self._server.run(BELONG, [self._book], fleet, about="control")
        return found.decode()

    async def _change_token(self, *told: str) -> int:
        keys = [self._book, self._changes, self._tokens]
        return int(await self._server.run(_TOKEN, keys, *told, about="control"))


def _gate(text: bytes) -> Gate:
    """The gate of a stored text, which begins with its version."""
    version, _, told = text.partition(b" ")
    if told.startswith(b"["):  # of before gates had more than a function and a collection
        return dataclasses.replace(Gate(*json.loads(told)), version=int(version))
    return gate_from_text(told, int(version))


def _field(gate: Gate) -> bytes:
    """The field of a gate in the hash of gates."""
    return packed(*(gate.key if any(gate.key[2:]) else gate.key[:2]))
