"""Gates, quotas, the function registry and tokens in SQLite, under one version number; acts, and members of the
fleet."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import takewhile

from ...foundation.clock import SYSTEM_CLOCK, Clock
from ...model.act import FORGOTTEN_AT_ONCE, MOST_SHOWN, Act, act_from_text, act_to_text
from ...model.function_spec import FunctionSpec, spec_from_dict, spec_to_dict
from ...model.gate import Gate, gate_from_text, gate_name, gate_to_text
from ...model.limits import KEPT_CHANGES, Quota, QuotaChange, Snapshot, quotas_from_text, quotas_to_text
from ...model.member import ORDERS_KEPT, FleetMember, MemberOrder
from ...model.token import Token, token_from_text, token_to_text
from ..sqlite.file import SqliteFile

SCHEMA = """
CREATE TABLE IF NOT EXISTS control_version (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    version INTEGER NOT NULL
) STRICT;
INSERT OR IGNORE INTO control_version VALUES (1, 1);
CREATE TABLE IF NOT EXISTS gates (
    function TEXT NOT NULL,
    collection TEXT NOT NULL,
    action TEXT NOT NULL CHECK (action IN ('pause', 'drop')),
    who TEXT NOT NULL,
    why TEXT NOT NULL,
    since REAL NOT NULL,
    PRIMARY KEY (function, collection)
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS gate_versions (
    function TEXT NOT NULL,
    collection TEXT NOT NULL,
    version INTEGER NOT NULL,
    PRIMARY KEY (function, collection)
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS gates_by_name (
    name TEXT PRIMARY KEY,
    gate TEXT NOT NULL,
    until REAL NOT NULL,
    version INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT OR IGNORE INTO gates_by_name
    SELECT json_array(function, collection, '', '', ''),
        json_object('function', function, 'collection', collection, 'action', action, 'who', who, 'why', why,
            'since', since),
        0, coalesce(gate_versions.version, 0)
    FROM gates LEFT JOIN gate_versions USING (function, collection);
DELETE FROM gates;
CREATE TABLE IF NOT EXISTS quotas (
    function TEXT PRIMARY KEY,
    concurrency INTEGER NOT NULL CHECK (concurrency >= 0),
    rate REAL NOT NULL CHECK (rate >= 0),
    burst REAL NOT NULL CHECK (burst >= 0),
    weight REAL NOT NULL CHECK (weight >= 0)
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS quota_changes (
    version INTEGER PRIMARY KEY,
    who TEXT NOT NULL,
    why TEXT NOT NULL,
    at REAL NOT NULL,
    quotas TEXT NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS functions (
    name TEXT PRIMARY KEY,
    spec TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS tokens (
    name TEXT PRIMARY KEY,
    token TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS acts (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    at REAL NOT NULL,
    act TEXT NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS act_ends (
    number INTEGER PRIMARY KEY,
    outcome TEXT NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS members (
    id TEXT PRIMARY KEY,
    place TEXT NOT NULL,
    told TEXT NOT NULL,
    until REAL NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS member_orders (
    id TEXT PRIMARY KEY,
    member TEXT NOT NULL,
    asked TEXT NOT NULL,
    answer TEXT NOT NULL DEFAULT '',
    at REAL NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS fleet (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    name TEXT NOT NULL
) STRICT;
"""
#: A number above every act's.
_ABOVE_ALL = (1 << 63) - 1


class SqliteControl:
    """A Control store in one SQLite file. Waiters in this process are woken by its own writes."""

    def __init__(self, file: SqliteFile, clock: Clock = SYSTEM_CLOCK) -> None:
        self._file = file
        self._clock = clock
        self._changed = asyncio.Event()
        self._snapshot: Snapshot | None = None
        #: Told of each token before it is revoked, in the writer's thread.
        self.on_revoked: Callable[[Token], None] = lambda token: None

    async def snapshot(self) -> Snapshot:
        if (known := self._snapshot) is not None:
            return known
        changed = self._changed
        found = await self._file.read(_load)
        if changed is self._changed:  # else it was read before a change, and must not be kept beyond it
            self._snapshot = found
        return found

    async def wait(self, version: int, timeout: float) -> Snapshot | None:
        try:
            async with asyncio.timeout(timeout):
                while True:
                    changed = self._changed  # taken before looking: a change during the look is not missed
                    if (found := await self.snapshot()).version != version:
                        break
                    await changed.wait()
        except TimeoutError:
            return None
        return found

    async def put_gate(self, gate: Gate) -> int:
        name, text = gate_name(gate), gate_to_text(replace(gate, since=gate.since or self._clock.wall()))

        def put(connection: sqlite3.Connection) -> bool:
            if gate.action == "resume":
                return connection.execute("DELETE FROM gates_by_name WHERE name = ?", (name,)).rowcount > 0
            connection.execute(
                "INSERT OR REPLACE INTO gates_by_name SELECT ?, ?, ?, version + 1 FROM control_version",
                (name, text, gate.until),
            )
            return True

        return await self._change(put)

    async def end_gates(self, over: Sequence[Gate] = ()) -> int:
        def put(connection: sqlite3.Connection) -> bool:
            rows = [(gate_name(gate), gate.version) for gate in over]
            ended = "DELETE FROM gates_by_name WHERE name = ? AND version = ?"
            return connection.executemany(ended, rows).rowcount > 0

        return await self._change(put)

    async def put_quotas(self, change: QuotaChange, expected: int) -> int:
        text, at = quotas_to_text(change.quotas), change.at or self._clock.wall()
        refused = False

        def put(connection: sqlite3.Connection) -> bool:
            nonlocal refused
            version, quotas = _quotas(connection)
            refused = version != expected
            if refused or quotas == quotas_from_text(text):
                return False
            connection.execute(
                "INSERT INTO quota_changes SELECT version + 1, ?, ?, ?, ? FROM control_version",
                (change.who, change.why, at, text),
            )
            connection.execute(
                "DELETE FROM quota_changes WHERE version NOT IN"
                " (SELECT version FROM quota_changes ORDER BY version DESC LIMIT ?)",
                (KEPT_CHANGES,),
            )
            return True

        made = await self._change(put)
        return 0 if refused else made

    async def quota_changes(self) -> list[QuotaChange]:
        def read(connection: sqlite3.Connection) -> list[tuple[int, str, str, float, str]]:
            return connection.execute(
                "SELECT version, who, why, at, quotas FROM quota_changes ORDER BY version DESC"
            ).fetchall()

        rows = await self._file.read(read)
        return [
            QuotaChange(version, who, why, at, tuple(quotas_from_text(text))) for version, who, why, at, text in rows
        ]

    async def register(self, functions: Sequence[FunctionSpec]) -> int:
        rows = [(spec.name, json.dumps(spec_to_dict(spec), sort_keys=True)) for spec in functions]

        def put(connection: sqlite3.Connection) -> bool:
            changed = 0
            for row in rows:
                changed += connection.execute(
                    "INSERT INTO functions VALUES (?, ?)"
                    " ON CONFLICT (name) DO UPDATE SET spec = excluded.spec WHERE spec <> excluded.spec",
                    row,
                ).rowcount
            return changed > 0

        return await self._change(put)

    async def put_token(self, token: Token) -> int:
        row = (token.name, token_to_text(token))

        def put(connection: sqlite3.Connection) -> bool:
            return connection.execute("INSERT OR IGNORE INTO tokens VALUES (?, ?)", row).rowcount > 0

        return await self._change(put)

    async def remove_token(self, name: str) -> int:
        def put(connection: sqlite3.Connection) -> bool:
            for (text,) in connection.execute("SELECT token FROM tokens WHERE name = ?", (name,)).fetchall():
                self.on_revoked(token_from_text(text))
            return connection.execute("DELETE FROM tokens WHERE name = ?", (name,)).rowcount > 0

        return await self._change(put)

    async def begin_act(self, act: Act) -> int:
        row = (act.at, act_to_text(act))

        def write(connection: sqlite3.Connection) -> int:
            return int(connection.execute("INSERT INTO acts (at, act) VALUES (?, ?)", row).lastrowid or 0)

        return await self._file.write(write)

    async def end_act(self, number: int, outcome: str) -> None:
        def write(connection: sqlite3.Connection) -> None:
            there = "INSERT OR IGNORE INTO act_ends SELECT number, ? FROM acts WHERE number = ?"
            connection.execute(there, (outcome, number))

        await self._file.write(write)

    async def acts(self, before: int = 0, limit: int = 100) -> list[Act]:
        def read(connection: sqlite3.Connection) -> list[tuple[int, str, str]]:
            return connection.execute(
                "SELECT number, act, coalesce(outcome, '') FROM acts LEFT JOIN act_ends USING (number)"
                " WHERE number < ? ORDER BY number DESC LIMIT ?",
                (before or _ABOVE_ALL, min(limit, MOST_SHOWN)),
            ).fetchall()

        return [act_from_text(*row) for row in await self._file.read(read)]

    async def forget_acts(self, since: float, most: int) -> int:
        def write(connection: sqlite3.Connection) -> int:
            rows = connection.execute(
                "SELECT number, at < ? OR number <= (SELECT max(number) FROM acts) - ? FROM acts"
                " ORDER BY number LIMIT ?",
                (since, most, FORGOTTEN_AT_ONCE),
            ).fetchall()
            old = [(number,) for number, gone in takewhile(lambda row: row[1], rows)]
            connection.executemany("DELETE FROM acts WHERE number = ?", old)
            connection.executemany("DELETE FROM act_ends WHERE number = ?", old)
            return len(old)

        return await self._file.write(write)

    async def tell_member(self, member: FleetMember, lease: float) -> list[MemberOrder]:
        now = self._clock.wall()

        def write(connection: sqlite3.Connection) -> list[tuple[str, str, str, str]]:
            connection.execute("DELETE FROM members WHERE until <= ?", (now,))
            connection.execute("INSERT OR REPLACE INTO members VALUES (?, ?, ?, ?)", (*member, now + lease))
            open_ = "SELECT id, member, asked, answer FROM member_orders WHERE member = ? AND answer = '' ORDER BY at"
            return connection.execute(open_, (member.id,)).fetchall()

        return [MemberOrder(*row) for row in await self._file.write(write)]

    async def members(self) -> list[FleetMember]:
        def read(connection: sqlite3.Connection) -> list[tuple[str, str, str]]:
            there = "SELECT id, place, told FROM members WHERE until > ? ORDER BY id"
            return connection.execute(there, (self._clock.wall(),)).fetchall()

        return [FleetMember(*row) for row in await self._file.read(read)]

    async def forget_member(self, id: str) -> None:
        def write(connection: sqlite3.Connection) -> None:
            connection.execute("DELETE FROM members WHERE id = ?", (id,))

        await self._file.write(write)

    async def put_order(self, order: MemberOrder) -> None:
        now = self._clock.wall()

        def write(connection: sqlite3.Connection) -> None:
            connection.execute("DELETE FROM member_orders WHERE at < ?", (now - ORDERS_KEPT,))
            connection.execute("INSERT OR IGNORE INTO member_orders VALUES (?, ?, ?, ?, ?)", (*order, now))

        await self._file.write(write)

    async def answer_order(self, id: str, answer: str) -> None:
        def write(connection: sqlite3.Connection) -> None:
            connection.execute("UPDATE member_orders SET answer = ? WHERE id = ? AND answer = ''", (answer, id))

        await self._file.write(write)

    async def order(self, id: str) -> MemberOrder | None:
        def read(connection: sqlite3.Connection) -> tuple[str, str, str, str] | None:
            one = "SELECT id, member, asked, answer FROM member_orders WHERE id = ? AND at >= ?"
            found: tuple[str, str, str, str] | None = connection.execute(
                one, (id, self._clock.wall() - ORDERS_KEPT)
            ).fetchone()
            return found

        row = await self._file.read(read)
        return None if row is None else MemberOrder(*row)

    async def belong(self, fleet: str) -> str:
        def write(connection: sqlite3.Connection) -> str:
            connection.execute("INSERT OR IGNORE INTO fleet VALUES (1, ?)", (fleet,))
            return str(connection.execute("SELECT name FROM fleet").fetchone()[0])

        return await self._file.write(write)

    async def _change(self, put: Callable[[sqlite3.Connection], bool]) -> int:
        """Runs a change and raises the version with it, if it changed anything; wakes the waiters."""

        def write(connection: sqlite3.Connection) -> tuple[bool, int]:
            changed = put(connection)
            if changed:
                connection.execute("UPDATE control_version SET version = version + 1")
            (version,) = connection.execute("SELECT version FROM control_version").fetchone()
            return changed, int(version)

        _, version = await self._file.write(write, self._committed)
        return version

    def _committed(self, answer: tuple[bool, int]) -> None:
        changed, _ = answer
        if changed:
            self._snapshot = None
            self._changed.set()
            self._changed = asyncio.Event()


def _load(connection: sqlite3.Connection) -> Snapshot:
    connection.execute("BEGIN")
    try:
        (version,) = connection.execute("SELECT version FROM control_version").fetchone()
        gates = connection.execute("SELECT gate, version FROM gates_by_name").fetchall()
        quotas_version, quotas = _quotas(connection)
        functions = connection.execute("SELECT spec FROM functions ORDER BY name").fetchall()
        tokens = connection.execute("SELECT token FROM tokens ORDER BY name").fetchall()
    finally:
        connection.execute("COMMIT")
    return Snapshot(
        version,
        sorted((gate_from_text(*row) for row in gates), key=lambda gate: gate.key),
        quotas,
        [spec_from_dict(json.loads(spec)) for (spec,) in functions],
        quotas_version,
        [token_from_text(token) for (token,) in tokens],
    )


def _quotas(connection: sqlite3.Connection) -> tuple[int, list[Quota]]:
    """The newest version of the quotas, and the quotas; version 0: quotas from before they had versions."""
    row = connection.execute("SELECT version, quotas FROM quota_changes ORDER BY version DESC LIMIT 1").fetchone()
    if row is not None:
        return row[0], quotas_from_text(row[1])
    rows = connection.execute("SELECT function, concurrency, rate, burst, weight FROM quotas ORDER BY function")
    return 0, [Quota(*row) for row in rows]
