"""Gates, quotas, the function registry and tokens in PostgreSQL, under one version number; acts, and members of the
fleet.

Polling is the base: a waiter looks at the version once a second, and at once when something changed through this
process or another node hints at a change.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from ...foundation.clock import SYSTEM_CLOCK, Clock
from ...model.act import FORGOTTEN_AT_ONCE, MOST_SHOWN, Act, act_from_text, act_to_text
from ...model.function_spec import FunctionSpec, spec_from_dict, spec_to_dict
from ...model.gate import Gate, gate_from_text, gate_name, gate_to_text
from ...model.limits import KEPT_CHANGES, QuotaChange, Snapshot, quotas_from_text, quotas_to_text
from ...model.member import ORDERS_KEPT, FleetMember, MemberOrder
from ...model.token import Token, token_from_text, token_to_text
from ..postgres.arrays import numbers, shown, texts
from ..postgres.schema import PostgresSchema
from ..postgres.watch import ChangeWatch

_GATE = "SELECT version, changed FROM S.control_gate(%s, %s::text, %s::float8)"
_END_GATES = "SELECT version, changed FROM S.control_end_gates(%s::text[], %s::bigint[])"
_QUOTAS = "SELECT version, changed FROM S.control_quotas(%s::bigint, %s, %s, %s::float8, %s, %s::bigint)"
_CHANGES = "SELECT version, who, why, at, quotas FROM S.quota_changes ORDER BY version DESC"
_REGISTER = "SELECT version, changed FROM S.control_register(%s::text[], %s::text[])"
_PUT_BY_NAME = "SELECT version, changed FROM S.control_token(%s, %s::text)"
_BEGIN_ACT = "INSERT INTO S.acts (at, act) VALUES (%s::float8, %s) RETURNING number"
_END_ACT = (
    "INSERT INTO S.act_ends SELECT number, %s FROM S.acts WHERE number = %s::bigint ON CONFLICT (number) DO NOTHING"
)
_ACTS = (
    "SELECT number, act, coalesce(outcome, '') FROM S.acts LEFT JOIN S.act_ends USING (number)"
    " WHERE number < %s::bigint ORDER BY number DESC LIMIT %s::int"
)
_TELL = "SELECT id, member, asked, answer FROM S.tell_member(%s, %s, %s, %s::float8)"
_MEMBERS = 'SELECT id, place, told FROM S.members WHERE until > clock_timestamp() ORDER BY id COLLATE "C"'
_FORGET_MEMBER = "SELECT S.forget_member(%s)"
_PUT_ORDER = "SELECT S.put_order(%s, %s, %s, %s, %s::float8)"
_ANSWER_ORDER = "UPDATE S.member_orders SET answer = %s WHERE id = %s AND answer = ''"
_ORDER = (
    "SELECT id, member, asked, answer FROM S.member_orders WHERE id = %s"
    " AND at >= clock_timestamp() - make_interval(secs => %s::float8)"
)
_FORGET_ACTS = "SELECT S.forget_acts(%s::float8, %s::bigint, %s::int)"
#: A number above every act's.
_ABOVE_ALL = (1 << 63) - 1
#: One statement, so that all of it is of one moment.
_SNAPSHOT = (
    "SELECT v.version,"
    " (SELECT json_agg(json_build_array(gate, version))::text FROM S.gates_by_name),"
    " (SELECT json_build_array(version, quotas)::text FROM S.quota_changes ORDER BY version DESC LIMIT 1),"
    " (SELECT array_agg(spec ORDER BY name) FROM S.functions),"
    ' (SELECT array_agg(token ORDER BY name COLLATE "C") FROM S.tokens) FROM S.control_version AS v'
)


class PostgresControl:
    """A Control store in one schema. `changed` is called after each change made here."""

    def __init__(
        self, schema: PostgresSchema, watch: ChangeWatch, changed: Callable[[], None], clock: Clock = SYSTEM_CLOCK
    ) -> None:
        self._schema = schema
        self._watch = watch
        self._changed = changed
        self._clock = clock

    async def snapshot(self) -> Snapshot:
        [(version, gates, quotas, functions, tokens)] = await self._schema.read(_SNAPSHOT, (), "gates and quotas")
        quotas_version, text = json.loads(quotas or '[0, "[]"]')
        return Snapshot(
            version,
            sorted((gate_from_text(*row) for row in json.loads(gates or "[]")), key=lambda gate: gate.key),
            quotas_from_text(text),
            [spec_from_dict(json.loads(spec)) for spec in functions or ()],
            quotas_version,
            [token_from_text(token) for token in tokens or ()],
        )

    async def wait(self, version: int, timeout: float) -> Snapshot | None:
        async def look() -> Snapshot | None:
            [(newest,)] = await self._schema.read("SELECT version FROM S.control_version", (), "gates and quotas")
            if newest == version:
                return None
            found = await self.snapshot()
            return None if found.version == version else found

        try:
            async with asyncio.timeout(timeout):
                return await self._watch.until(look)
        except TimeoutError:
            return None

    async def put_gate(self, gate: Gate) -> int:
        since = gate.since or self._clock.wall()
        gate = replace(gate, who=shown(gate.who), why=shown(gate.why), since=since)
        text = None if gate.action == "resume" else gate_to_text(gate)
        return await self._change(_GATE, (gate_name(gate), text, gate.until), "a gate")

    async def end_gates(self, over: Sequence[Gate] = ()) -> int:
        told = texts([gate_name(gate) for gate in over]), numbers([gate.version for gate in over])
        return await self._change(_END_GATES, told, "gates")

    async def put_quotas(self, change: QuotaChange, expected: int) -> int:
        at = change.at or self._clock.wall()
        row = (expected, shown(change.who), shown(change.why), at, quotas_to_text(change.quotas), KEPT_CHANGES)
        return await self._change(_QUOTAS, row, "quotas")

    async def quota_changes(self) -> list[QuotaChange]:
        rows = await self._schema.read(_CHANGES, (), "gates and quotas")
        return [
            QuotaChange(version, who, why, at, tuple(quotas_from_text(text))) for version, who, why, at, text in rows
        ]

    async def register(self, functions: Sequence[FunctionSpec]) -> int:
        named = {spec.name: json.dumps(spec_to_dict(spec), sort_keys=True) for spec in functions}
        return await self._change(_REGISTER, (texts(list(named)), texts(list(named.values()))), "functions")

    async def put_token(self, token: Token) -> int:
        return await self._change(_PUT_BY_NAME, (token.name, token_to_text(token)), "a token")

    async def remove_token(self, name: str) -> int:
        return await self._change(_PUT_BY_NAME, (name, None), "a token")

    async def begin_act(self, act: Act) -> int:
        [(number,)] = await self._schema.write(_BEGIN_ACT, (act.at, act_to_text(act)), "an act")
        return int(number)

    async def end_act(self, number: int, outcome: str) -> None:
        await self._schema.write(_END_ACT, (outcome, number), "the end of an act")

    async def acts(self, before: int = 0, limit: int = 100) -> list[Act]:
        rows = await self._schema.read(_ACTS, (before or _ABOVE_ALL, min(limit, MOST_SHOWN)), "acts")
        return [act_from_text(*row) for row in rows]

    async def forget_acts(self, since: float, most: int) -> int:
        [(count,)] = await self._schema.write(_FORGET_ACTS, (since, most, FORGOTTEN_AT_ONCE), "old acts")
        return int(count)

    async def tell_member(self, member: FleetMember, lease: float) -> list[MemberOrder]:
        rows = await self._schema.write(_TELL, (*member, lease), "a member")
        return [MemberOrder(*each) for each in rows]

    async def members(self) -> list[FleetMember]:
        return [FleetMember(*row) for row in await self._schema.read(_MEMBERS, (), "members")]

    async def forget_member(self, id: str) -> None:
        await self._schema.write(_FORGET_MEMBER, (id,), "a member")

    async def put_order(self, order: MemberOrder) -> None:
        await self._schema.write(_PUT_ORDER, (*order, ORDERS_KEPT), "an order")

    async def answer_order(self, id: str, answer: str) -> None:
        await self._schema.write(_ANSWER_ORDER, (answer, id), "an answer")

    async def order(self, id: str) -> MemberOrder | None:
        rows = await self._schema.read(_ORDER, (id, ORDERS_KEPT), "an order")
        return MemberOrder(*rows[0]) if rows else None

    async def belong(self, fleet: str) -> str:
        [(name,)] = await self._schema.write("SELECT S.control_belong(%s)", (fleet,), "the fleet")
        return str(name)

    async def _change(self, call: str, row: Sequence[Any], about: str) -> int:
        [(version, changed)] = await self._schema.write(call, row, about)
        if changed:
            self._changed()
        return int(version)
