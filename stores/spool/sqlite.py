"""The spool in one SQLite file. Group commit makes one fsync of all submissions that wait for it."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from typing import Any, Protocol, TypeVar

from ...foundation.clock import SYSTEM_CLOCK, Clock
from ...model.function_spec import FunctionSpec, spec_from_dict, spec_to_dict
from ...model.one_item import CHANGED, ENDED, EXPIRES, UNKNOWN
from ...model.tenant_key import plain_key, tenant_key
from ...model.workload import Headers, Kind
from ..queue.admission import check_changes, dedupe_name
from ..queue.ids import Ids, created_at, id_number, id_text
from ..queue.items import NOW, ItemContent, Reschedule
from ..queue.queue import NewItem, Submitted
from ..sqlite.file import SqliteFile
from ..sqlite.insert import insert
from ..trusted_time import TrustedTime
from .spool import PREFIX, Spooled, SpooledItem, SpooledTotals

#: Rows that one write may sweep away: a bound on the time that it holds the writer.
SWEEP = 2000
EMPTY = SpooledTotals(0, 0)
_COLUMNS = "id, function, priority, collection, tenant, payload, due, key, headers, dedupe_key, expires_at"
_IDS = "(SELECT value FROM json_each(?))"

SCHEMA = """
CREATE TABLE IF NOT EXISTS spooled (
    id INTEGER PRIMARY KEY,
    function TEXT NOT NULL,
    priority INTEGER NOT NULL,
    collection TEXT NOT NULL,
    tenant TEXT NOT NULL,
    payload BLOB NOT NULL,
    due REAL NOT NULL,
    key TEXT NOT NULL,
    headers TEXT NOT NULL,
    dedupe_key TEXT NOT NULL CHECK (dedupe_key <> ''),
    expires_at REAL NOT NULL,
    UNIQUE (function, dedupe_key)
) STRICT;
CREATE TABLE IF NOT EXISTS left_spool (
    id INTEGER PRIMARY KEY,
    became TEXT NOT NULL,
    reason TEXT NOT NULL,
    cancelled INTEGER NOT NULL,
    time REAL NOT NULL, -- when it left, or is due where that is later
    function TEXT NOT NULL,
    priority INTEGER NOT NULL,
    collection TEXT NOT NULL,
    tenant TEXT NOT NULL,
    payload BLOB -- of what was refused: whoever mends the cause may want it
) STRICT;
CREATE INDEX IF NOT EXISTS left_spool_time ON left_spool (time);
CREATE INDEX IF NOT EXISTS left_spool_refused ON left_spool (id) WHERE payload IS NOT NULL;
CREATE TABLE IF NOT EXISTS moved_spool (id INTEGER PRIMARY KEY) STRICT; -- rescheduled in the spool
CREATE TABLE IF NOT EXISTS cancelled_spool (id INTEGER PRIMARY KEY) STRICT; -- and not in the queue yet
CREATE TABLE IF NOT EXISTS known_functions (name TEXT PRIMARY KEY, spec TEXT NOT NULL) STRICT;
"""

#: Conditions: a row of `spooled` is among the marked ones.
_MOVED = "EXISTS (SELECT 1 FROM moved_spool AS m WHERE m.id = spooled.id)"
_CANCELLED = "EXISTS (SELECT 1 FROM cancelled_spool AS c WHERE c.id = spooled.id)"

T = TypeVar("T")


class SpoolRoom(Protocol):
    """Raises where a spool has no room for more: by tenant, what it holds and what would be added, and what it holds in
    all. `shared`: tenants are in use."""

    def __call__(
        self,
        held: Mapping[str, tuple[int, int]],
        more: Mapping[str, tuple[int, int]],
        whole: tuple[int, int],
        *,
        shared: bool,
    ) -> None: ...


class SqliteSpool:
    """A Spool in one SQLite file, which its owner opens and closes; `open` comes after the file's.

    room       called in the writer before something is added; may refuse (Overloaded)
    retention  seconds for which the end of an id is known by the `trusted` time, from when it left or is due; at most
               `most_kept` of them
    """

    def __init__(
        self,
        file: SqliteFile,
        clock: Clock = SYSTEM_CLOCK,
        *,
        room: SpoolRoom,
        retention: float = 7 * 86_400.0,
        most_kept: int = 1_000_000,
        trusted: TrustedTime | None = None,
    ) -> None:
        self._file = file
        self._clock = clock
        self._trusted = trusted or TrustedTime(clock)
        self._room = room
        self._retention = retention
        self._most_kept = most_kept
        self._ids = Ids(0)
        self._held = self._durable = EMPTY  # in the writer; once it is committed
        self._of_tenants: dict[str, SpooledTotals] = {}  # in the writer: its parts, of tenants that have some
        self._shared = False  # in the writer: some item was a tenant's
        self._kept = 0
        file.on_rollback(self._reload)

    async def open(self) -> None:
        """Counts the stored workloads. Harmless when open."""
        await self._file.write(self._reload)

    def _reload(self, connection: sqlite3.Connection) -> None:
        self._of_tenants, self._held = {}, EMPTY
        self._holds(connection.execute("SELECT tenant, count(*), sum(length(payload)) FROM spooled GROUP BY 1"))
        self._durable = self._held
        left = "SELECT 1 FROM left_spool WHERE tenant <> '' LIMIT 1"
        self._shared = self._shared or any(self._of_tenants) or connection.execute(left).fetchone() is not None
        last = connection.execute(
            "SELECT max(coalesce((SELECT max(id) FROM spooled), 0), coalesce((SELECT max(id) FROM left_spool), 0))"
        )
        self._ids = Ids(max(self._ids.last, last.fetchone()[0]))
        (self._kept,) = connection.execute("SELECT count(*) FROM left_spool").fetchone()

    def _holds(self, more: Iterable[tuple[str, int, int]], sign: int = 1) -> None:
        """Adds workloads and bytes by tenant to those that are held, or takes them off."""
        for tenant, items, size in more:
            own = self._of_tenants.pop(tenant, EMPTY)
            own, self._held = (
                SpooledTotals(of.items + sign * items, of.size + sign * size) for of in (own, self._held)
            )
            if own.items:
                self._of_tenants[tenant] = own

    async def _write(self, fn: Callable[[sqlite3.Connection], T]) -> T:
        """Makes a write after which others learn the new totals, once it is durable: a gateway that is told that the
        spool is empty may go past it."""

        @wraps(fn)
        def write(connection: sqlite3.Connection) -> tuple[T, SpooledTotals]:
            return fn(connection), self._held

        return (await self._file.write(write, self._committed))[0]

    def _committed(self, answer: tuple[object, SpooledTotals]) -> None:
        self._durable = answer[1]

    async def add(self, items: Sequence[NewItem], shared: bool = False) -> list[Submitted]:
        if not items:
            return []
        return await self._write(lambda connection: self._add(connection, items, shared))

    def _add(self, connection: sqlite3.Connection, items: Sequence[NewItem], shared: bool) -> list[Submitted]:
        names = [(item.kind.function, dedupe_name(item, tenant_key)) for item in items]
        wanted = json.dumps(names)
        known: dict[tuple[str, str], int] = {
            (function, key): number
            for function, key, number in connection.execute(
                "SELECT s.function, s.dedupe_key, s.id FROM json_each(?) AS j"
                " JOIN spooled AS s ON s.function = j.value ->> 0 AND s.dedupe_key = j.value ->> 1",
                (wanted,),
            )
        }
        rows: list[tuple[Any, ...]] = []
        answers: list[Submitted] = []
        more: dict[str, tuple[int, int]] = {}
        numbers = self._ids.take(len(items), int(self._clock.wall() * 1000))
        for number, item, named in zip(numbers, items, names, strict=True):
            first = known.setdefault(named, number)
            answers.append(Submitted(PREFIX + id_text(first), first != number))
            if first == number:
                headers = json.dumps(item.headers) if item.headers else ""
                rest = (item.payload, item.due, item.key, headers, named[1], item.expires_at)
                rows.append((number, *item.kind, *rest))
                count, size = more.get(item.kind.tenant, EMPTY)
                more[item.kind.tenant] = (count + 1, size + len(item.payload))
        if rows:
            self._shared = self._shared or shared or any(more)
            self._room(self._of_tenants, more, self._held, shared=self._shared)
            insert(connection, f"spooled ({_COLUMNS})", rows)
            self._holds((tenant, *load) for tenant, load in more.items())
        return answers

    async def next(self, items: int, size: int) -> list[SpooledItem]:
        def load(connection: sqlite3.Connection) -> list[Any]:
            last, left = 0, size
            sizes = connection.execute("SELECT id, length(payload) FROM spooled ORDER BY id LIMIT ?", (items,))
            for number, length in sizes:
                left -= length
                if last and left < 0:
                    break
                last = number
            found = connection.execute(
                f"SELECT {_COLUMNS}, {_MOVED}, {_CANCELLED} FROM spooled WHERE id <= ? ORDER BY id",
                (last,),
            )
            return found.fetchall()

        rows = await self._file.read(load)
        return [_waiting(row) for row in rows]

    async def became(self, ids: Sequence[str], queue_ids: Sequence[str]) -> None:
        pairs = [(_number(id), queue_id) for id, queue_id in zip(ids, queue_ids, strict=True)]

        def move(connection: sqlite3.Connection) -> None:
            self._leave(connection, pairs, "")

        if pairs:
            await self._write(move)

    async def refuse(self, id: str, reason: str) -> None:
        def keep(connection: sqlite3.Connection) -> None:
            self._leave(connection, [(_number(id), "")], reason)

        await self._write(keep)

    async def cancel(self, ids: Sequence[str]) -> list[bool]:
        numbers = [_number(id) for id in ids]

        def mark(connection: sqlite3.Connection) -> list[bool]:
            text = json.dumps(numbers)
            there = {number for (number,) in connection.execute(f"SELECT id FROM spooled WHERE id IN {_IDS}", (text,))}
            connection.execute(
                f"INSERT OR IGNORE INTO cancelled_spool SELECT id FROM spooled WHERE id IN {_IDS}", (text,)
            )
            return [number in there for number in numbers]

        return await self._file.write(mark)

    def _leave(self, connection: sqlite3.Connection, pairs: Sequence[tuple[int, str]], reason: str) -> None:
        """Moves rows out of the waiting ones, all in one step. A row that is not due yet is known for the retention
        from its due time on: until then it waits in the queue, which knows it as long."""
        text, now = json.dumps(pairs), self._clock.wall()
        before = self._held.items
        gone = connection.execute(
            "SELECT tenant, count(*), sum(length(payload)) FROM spooled"
            " WHERE id IN (SELECT value ->> 0 FROM json_each(?)) GROUP BY 1",
            (text,),
        )
        self._holds(gone, -1)
        connection.execute(
            "INSERT OR REPLACE INTO left_spool SELECT s.id, j.value ->> 1, ?, c.id IS NOT NULL,"
            " iif(c.id IS NULL, max(?, s.due), ?), s.function,"
            " s.priority, s.collection, s.tenant, CASE WHEN ? <> '' AND c.id IS NULL THEN s.payload END"
            " FROM json_each(?) AS j JOIN spooled AS s ON s.id = j.value ->> 0"
            " LEFT JOIN cancelled_spool AS c ON c.id = s.id",
            (reason, now, now, reason, text),
        )
        for table in ("spooled", "moved_spool", "cancelled_spool"):
            connection.execute(f"DELETE FROM {table} WHERE id IN (SELECT value ->> 0 FROM json_each(?))", (text,))
        self._kept += before - self._held.items
        self._forget(connection)

    def _forget(self, connection: sqlite3.Connection) -> None:
        """Forgets some of the rows that left long ago, or that are too many."""
        gone = connection.execute(
            "DELETE FROM left_spool WHERE id IN (SELECT id FROM left_spool WHERE time < ? ORDER BY time LIMIT ?)",
            (self._trusted.seconds() - self._retention, SWEEP),
        ).rowcount
        excess = min(SWEEP, self._kept - gone - self._most_kept)
        if excess > 0:
            gone += connection.execute(
                "DELETE FROM left_spool WHERE id IN (SELECT id FROM left_spool ORDER BY time LIMIT ?)", (excess,)
            ).rowcount
        self._kept -= gone

    async def find(self, ids: Sequence[str]) -> list[Spooled | None]:
        numbers = [_number(id) for id in ids]

        def load(connection: sqlite3.Connection) -> dict[int, Any]:
            text = json.dumps(numbers)
            rows = connection.execute(
                f"SELECT id, function, priority, collection, tenant, due, '', '', {_CANCELLED} FROM spooled"
                f" WHERE id IN {_IDS} UNION ALL"
                " SELECT id, function, priority, collection, tenant, 0.0, became, reason, cancelled FROM left_spool"
                f" WHERE id IN {_IDS}",
                (text, text),
            )
            return {row[0]: row[1:] for row in rows}

        found = await self._file.read(load)
        return [_spooled(id, found.get(number)) for id, number in zip(ids, numbers, strict=True)]

    async def reschedule(self, changes: Sequence[Reschedule]) -> list[str]:
        check_changes(changes)

        def change(connection: sqlite3.Connection) -> list[str]:
            return [self._change(connection, each) for each in changes]

        return await self._file.write(change)

    def _change(self, connection: sqlite3.Connection, change: Reschedule) -> str:
        number, now = _number(change.id), self._clock.wall()
        row = connection.execute(
            f"SELECT due, priority, expires_at, {_CANCELLED} FROM spooled WHERE id = ?", (number,)
        ).fetchone()
        if row is None:
            return UNKNOWN
        due, priority, expires_at, cancelled = row
        if cancelled:
            return ENDED
        if change.due == NOW:
            due = due if due <= now else NOW
        elif change.due is not None:
            due = change.due
        if 0 < expires_at <= (due or now):
            return EXPIRES
        connection.execute(
            "UPDATE spooled SET due = ?, priority = ? WHERE id = ?",
            (due, priority if change.priority is None else change.priority, number),
        )
        connection.execute("INSERT OR IGNORE INTO moved_spool VALUES (?)", (number,))
        return CHANGED

    async def peek(self, id: str, max_bytes: int) -> ItemContent | None:
        def look(connection: sqlite3.Connection) -> Any:
            return connection.execute(
                "SELECT substr(payload, 1, ?), length(payload), key, headers, expires_at FROM spooled WHERE id = ?",
                (max_bytes, _number(id)),
            ).fetchone()

        row = await self._file.read(look)
        if row is None:
            return None
        payload, size, key, headers, expires_at = row
        return ItemContent(bytes(payload or b""), size, key, _pairs(headers), expires_at)

    async def held(self) -> SpooledTotals:
        return self._durable

    async def refused(self) -> int:
        def count(connection: sqlite3.Connection) -> int:
            return int(connection.execute("SELECT count(*) FROM left_spool WHERE payload IS NOT NULL").fetchone()[0])

        return await self._file.read(count)

    async def oldest(self) -> float:
        def first(connection: sqlite3.Connection) -> int | None:
            found: int | None = connection.execute("SELECT min(id) FROM spooled").fetchone()[0]
            return found

        number = await self._file.read(first)
        return 0.0 if number is None else created_at(number)

    async def remember(self, functions: Sequence[FunctionSpec]) -> None:
        rows = [(spec.name, json.dumps(spec_to_dict(spec), sort_keys=True)) for spec in functions]

        def keep(connection: sqlite3.Connection) -> None:
            known = connection.execute("SELECT name, spec FROM known_functions ORDER BY name").fetchall()
            if sorted(rows) != known:
                connection.execute("DELETE FROM known_functions")
                connection.executemany("INSERT INTO known_functions VALUES (?, ?)", rows)

        await self._file.write(keep)

    async def functions(self) -> list[FunctionSpec]:
        def load(connection: sqlite3.Connection) -> list[tuple[str]]:
            return connection.execute("SELECT spec FROM known_functions ORDER BY name").fetchall()

        return [spec_from_dict(json.loads(spec)) for (spec,) in await self._file.read(load)]


def _number(id: str) -> int:
    """The number of an id of the spool; -1 for any other id."""
    return id_number(id.removeprefix(PREFIX)) if id.startswith(PREFIX) else -1


def _waiting(row: Any) -> SpooledItem:
    number, function, priority, collection, tenant, payload, due, key, headers, dedupe_key, expires_at, *marks = row
    kind = Kind(function, priority, collection, tenant)
    item = NewItem(kind, bytes(payload), due, key, _pairs(headers), plain_key(dedupe_key), expires_at)
    return SpooledItem(PREFIX + id_text(number), item, *map(bool, marks))


def _pairs(headers: str) -> Headers:
    return tuple((name, value) for name, value in json.loads(headers)) if headers else ()


def _spooled(id: str, row: Any) -> Spooled | None:
    if row is None:
        return None
    function, priority, collection, tenant, due, became, reason, cancelled = row
    kind = Kind(function, priority, collection, tenant)
    return Spooled(id, kind, created_at(_number(id)), due, became, reason, bool(cancelled))
