"""The queue on SQLite: submissions, claims and settlements as statements over batches, in one writer thread.

Every statement takes one step, however many rows it touches (see stores/sqlite.py); a look that finds nothing due costs
no statement, because the earliest trigger of each lane is kept in memory as a lower bound.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from ...sdk.clock import SYSTEM_CLOCK, Clock
from ...sdk.model.claim import Leased, Renewed, Settle, State
from ...sdk.model.demand import Cell, Demand
from ...sdk.model.errors import InvalidPayload, Overloaded
from ...sdk.model.workload import FLIGHT_ITEMS, Extra, Headers
from ..config import StoresConfig
from ..sqlite import Again, SqliteFile
from .lifecycle import LEASED, TERMINAL, WAITING
from .queue import NewItem, Status, Submitted
from .sqlite_rows import (
    BLOCKED,
    CANCEL,
    DEDUPED,
    HAS_EXTRA,
    KEYED,
    SCHEMA,
    Ids,
    Kinds,
    created_at,
    id_number,
    id_text,
    insert,
)
from .turns import Ready, turns

__all__ = ["SCHEMA", "SqliteQueue"]

#: Ended rows that one sweep looks at: a bound on how long it holds the writer.
SWEEP = 2000

_decode = msgspec.json.Decoder().decode
_IDS = "(SELECT value FROM json_each(?))"


class _Claim:
    """A claim that may still have items out. `until` in µs; `left` is an upper bound on how many."""

    __slots__ = ("left", "until")

    def __init__(self, until: int, left: int) -> None:
        self.until = until
        self.left = left


_Row = tuple[int, int, int, int, int, int, int, int]  # id, kind, state, fence, attempts, crashes, flags, size


class SqliteQueue:
    """A Queue in one SQLite file. The owner opens and closes the file; `open` must be called after that.

    Invariants: `_earliest[lane]` is at most the earliest next trigger of what waits in the lane (a lane where nothing
    waits may be absent); `_claims` has every row of the table `claims`; `_counts` are the rows by state.
    """

    def __init__(self, file: SqliteFile, config: StoresConfig | None = None, clock: Clock = SYSTEM_CLOCK) -> None:
        self._file = file
        self._config = config or StoresConfig()
        self._clock = clock
        self._kinds = Kinds()
        self._ids = Ids(0)
        self._earliest: dict[int, int] = {}
        self._counts: Counter[State] = Counter()
        self._claims: dict[int, _Claim] = {}
        self._fence = 0
        self._keyed = 0
        self._turn = 0
        self._swept = 0

    async def open(self) -> None:
        """Reads what must be known in memory: lanes, kinds, counts, the earliest trigger of each lane."""
        await self._file.write(self._reload)
        self._file.on_rollback(self._reload)

    def _reload(self, connection: sqlite3.Connection) -> None:
        self._kinds.reload(connection)
        rows = connection.execute("SELECT state, count(*) FROM tasks GROUP BY state").fetchall()
        self._counts = Counter({State(state): count for state, count in rows})
        self._earliest = dict(
            connection.execute(
                "SELECT lane, min(next_trigger) FROM tasks WHERE next_trigger IS NOT NULL GROUP BY lane"
            ).fetchall()
        )
        claims = connection.execute("SELECT fence, until, json_array_length(ids) FROM claims").fetchall()
        self._claims = {fence: _Claim(until, left) for fence, until, left in claims}
        (self._fence,) = connection.execute("SELECT coalesce(max(fence), 0) FROM tasks").fetchone()
        (self._keyed,) = connection.execute("SELECT count(*) FROM keyed").fetchone()
        (last,) = connection.execute("SELECT coalesce(max(id), 0) FROM tasks").fetchone()
        self._ids = Ids(last)

    def _now(self) -> int:
        return int(self._clock.wall() * 1e6)

    # Submitting.

    async def submit(self, items: Sequence[NewItem]) -> list[Submitted]:
        for index, item in enumerate(items):
            if len(item.payload) > self._config.max_payload:
                raise InvalidPayload(
                    f"workload {index} for {item.kind.function!r}: its payload has {len(item.payload)} bytes, at most "
                    f"{self._config.max_payload} are allowed; store it elsewhere and submit a reference"
                )
        return await self._file.write(lambda connection: self._insert(connection, items)) if items else []

    def _insert(self, connection: sqlite3.Connection, items: Sequence[NewItem]) -> list[Submitted]:
        live = sum(self._counts[state] for state in WAITING | LEASED)
        if live + len(items) > self._config.max_waiting:
            raise Overloaded(
                f"the queue holds {live} workloads and takes at most {self._config.max_waiting}; try again later", 5.0
            )
        now = self._now()
        known = self._known_dedupe_keys(connection, items)
        answers: list[Submitted] = []
        tasks: list[tuple[int, int, int, int, int, int]] = []
        entities: list[tuple[int, bytes, str, str, float]] = []
        keyed: list[tuple[str, int, int]] = []
        dedupe: list[tuple[str, str, int]] = []
        ids = self._ids.take(len(items), now // 1000)
        for number, item in zip(ids, items, strict=True):
            function = item.kind.function
            if item.dedupe_key:
                first = known.setdefault((function, item.dedupe_key), number)
                if first != number:
                    answers.append(Submitted(id_text(first), True))
                    continue
                dedupe.append((function, item.dedupe_key, number))
            kind = self._kinds.number(connection, item.kind)
            due = max(0, int(item.due * 1e6)) or now
            flags = (
                (HAS_EXTRA if item.key or item.headers or item.expires_at else 0)
                | (KEYED if item.key else 0)
                | (DEDUPED if item.dedupe_key else 0)
            )
            trigger = due
            if item.key:
                older = connection.execute("SELECT 1 FROM keyed WHERE key = ? LIMIT 1", (item.key,)).fetchone()
                trigger = BLOCKED if older or any(key == item.key for key, _, _ in keyed) else due
                keyed.append((item.key, number, due))
            lane = self._kinds.lane_of[kind]
            tasks.append((number, lane, kind, trigger, flags, len(item.payload)))
            headers = json.dumps(item.headers) if item.headers else ""
            entities.append((number, item.payload, item.key, headers, item.expires_at))
            self._sooner(lane, trigger)
            answers.append(Submitted(id_text(number), False))
        insert(
            connection,
            "tasks (id, lane, kind, state, next_trigger, flags, size)",
            7,
            [(number, lane, kind, 0, trigger, flags, size) for number, lane, kind, trigger, flags, size in tasks],
        )
        insert(connection, "entities (id, payload, key, headers, expires_at)", 5, entities)
        insert(connection, "keyed (key, id, due)", 3, keyed)
        insert(connection, "dedupe (function, key, id)", 3, dedupe)
        self._counts[State.NEW] += len(tasks)
        self._keyed += len(keyed)
        return answers

    def _known_dedupe_keys(
        self, connection: sqlite3.Connection, items: Iterable[NewItem]
    ) -> dict[tuple[str, str], int]:
        wanted = [(item.kind.function, item.dedupe_key) for item in items if item.dedupe_key]
        if not wanted:
            return {}
        rows = connection.execute(
            "SELECT d.function, d.key, d.id FROM json_each(?) AS j"
            " JOIN dedupe AS d ON d.function = j.value ->> 0 AND d.key = j.value ->> 1",
            (json.dumps(wanted),),
        ).fetchall()
        return {(function, key): number for function, key, number in rows}

    def _sooner(self, lane: int, trigger: int) -> None:
        if trigger < self._earliest.get(lane, BLOCKED + 1):
            self._earliest[lane] = trigger

    # Leasing.

    async def lease(self, demand: Demand, seconds: float, wait: float) -> Leased | None:
        return await self._file.write_when(lambda connection: self._claim(connection, demand, seconds), wait)

    def _claim(self, connection: sqlite3.Connection, demand: Demand, seconds: float) -> Leased | Again:
        now = self._now()
        next_look = self._expire(connection, now)
        total = min(demand.total, FLIGHT_ITEMS)
        closed_functions = {
            each.function for each in demand.closed if not each.collection and not each.tenant and not each.drop
        }
        closed_collections = {
            (each.function, each.collection)
            for each in demand.closed
            if each.collection and not each.tenant and not each.drop
        }
        ready: list[Ready] = []
        for lane, earliest in self._earliest.items():
            function, priority, collection = self._kinds.lanes[lane]
            limit = demand.cells.get(Cell(function, priority), 0)
            if limit <= 0 or function in closed_functions or (function, collection) in closed_collections:
                continue
            if earliest <= now:
                ready.append(Ready(lane, priority, limit))
            else:
                next_look = min(next_look, earliest)
        rows: list[_Row] = []
        if ready and total > 0:
            rows = self._pick(connection, demand, turns(ready, total, self._config.low_share, self._turn), total, now)
            self._turn += 1
        if not rows:
            return Again((next_look - now) / 1e6)
        return self._take(connection, rows, now, seconds)

    def _expire(self, connection: sqlite3.Connection, now: int) -> int:
        """Items of claims that were not renewed wait again, due now. Returns when the next claim ends."""
        over = [fence for fence, claim in self._claims.items() if claim.until <= now]
        for fence in over:
            (ids,) = connection.execute("DELETE FROM claims WHERE fence = ? RETURNING ids", (fence,)).fetchone()
            rows = connection.execute(
                "UPDATE tasks SET state = iif(attempts > 0, 1, 0), next_trigger = ?"
                f" WHERE id IN {_IDS} AND fence = ? AND state IN (2, 3, 4) RETURNING lane",
                (now, ids, fence),
            ).fetchall()
            del self._claims[fence]
            for lane in {lane for (lane,) in rows}:
                self._sooner(lane, now)
        if over:
            states = connection.execute("SELECT state, count(*) FROM tasks GROUP BY state").fetchall()
            self._counts = Counter({State(state): count for state, count in states})
        return min((claim.until for claim in self._claims.values()), default=BLOCKED)

    def _pick(
        self, connection: sqlite3.Connection, demand: Demand, plan: list[Ready], total: int, now: int
    ) -> list[_Row]:
        """Visits the lanes in turn; a visit that finds less than it asked for knows the lane's next trigger."""
        tenants = {(each.function, each.tenant) for each in demand.closed if each.tenant and not each.drop}
        left = dict(demand.cells)
        picked: list[_Row] = []
        room = demand.max_bytes
        for lane, _, limit in plan:
            function, priority, _ = self._kinds.lanes[lane]
            cell = Cell(function, priority)
            limit = min(limit, left[cell], total - len(picked))
            if limit <= 0 or room <= 0:
                continue
            shut = [
                number
                for number, kind in self._kinds.kinds.items()
                if tenants and self._kinds.lane_of[number] == lane and (function, kind.tenant) in tenants
            ]
            (text,) = connection.execute(
                "SELECT json_group_array(json_array(id, kind, state, fence, attempts, crashes, flags, size)) FROM"
                " (SELECT * FROM tasks WHERE lane = ?1 AND next_trigger <= ?2"
                "  AND (?3 = '[]' OR kind NOT IN (SELECT value FROM json_each(?3)))"
                "  ORDER BY next_trigger LIMIT ?4)",
                (lane, now, json.dumps(shut), limit),
            ).fetchone()
            rows: list[_Row] = _decode(text)
            if len(rows) < limit:
                self._earliest[lane] = self._next_trigger(connection, lane, now if not shut else now + 1_000_000)
            for row in rows:
                room -= row[7]
                if room < 0 and picked:
                    self._sooner(lane, now)
                    break
                picked.append(row)
                left[cell] -= 1
        return picked

    @staticmethod
    def _next_trigger(connection: sqlite3.Connection, lane: int, after: int) -> int:
        (trigger,) = connection.execute(
            "SELECT min(next_trigger) FROM tasks WHERE lane = ? AND next_trigger > ?", (lane, after)
        ).fetchone()
        return BLOCKED if trigger is None else int(trigger)

    def _take(self, connection: sqlite3.Connection, rows: list[_Row], now: int, seconds: float) -> Leased | Again:
        """Writes the claim and reads the payloads. Expired items end here, without being handed out."""
        ids = [row[0] for row in rows]
        text = json.dumps(ids)
        extras = self._extras(connection, rows)
        expired = [number for number, extra in extras.items() if 0 < extra.expires_at <= now / 1e6]
        fence = self._fence = max([now, self._fence + 1, *(row[3] + 1 for row in rows)])
        until = now + int(seconds * 1e6)
        connection.execute(
            f"UPDATE tasks SET state = 2, fence = ?, next_trigger = NULL WHERE id IN {_IDS}", (fence, text)
        )
        connection.execute("INSERT INTO claims (fence, until, ids) VALUES (?, ?, ?)", (fence, until, text))
        self._claims[fence] = _Claim(until, len(rows))
        for row in rows:
            self._counts[State(row[2])] -= 1
        self._counts[State.ENQUEUED] += len(rows)
        if expired:
            gone = set(expired)
            self._end(
                connection,
                fence,
                [
                    Settle(id_text(each), fence, State.EXPIRED, reason="its deadline passed before it started")
                    for each in expired
                ],
            )
            rows = [row for row in rows if row[0] not in gone]
            if not rows:
                return Again(0.0)
            text = json.dumps([row[0] for row in rows])
        (payloads,) = connection.execute(
            "SELECT json_group_object(e.id, hex(e.payload)) FROM json_each(?) AS j JOIN entities AS e"
            " ON e.id = j.value",
            (text,),
        ).fetchone()
        by_id: dict[str, str] = _decode(payloads)
        kinds = self._kinds.kinds
        return Leased(
            fence=fence,
            lease=seconds,
            kinds=[kinds[row[1]] for row in rows],
            ids=[f"{row[0]:016x}" for row in rows],
            payloads=[bytes.fromhex(by_id[str(row[0])]) for row in rows],
            attempts=[row[4] + 1 for row in rows],
            extras={index: extras[row[0]] for index, row in enumerate(rows) if row[0] in extras} if extras else {},
        )

    @staticmethod
    def _extras(connection: sqlite3.Connection, rows: list[_Row]) -> dict[int, Extra]:
        special = {row[0]: row for row in rows if row[6] & HAS_EXTRA or row[5]}
        if not special:
            return {}
        found = connection.execute(
            f"SELECT id, key, headers, expires_at, progress FROM entities WHERE id IN {_IDS}",
            (json.dumps(list(special)),),
        ).fetchall()
        return {
            number: Extra(
                key=key,
                headers=_headers(headers),
                crashes=special[number][5],
                expires_at=expires_at,
                alone=special[number][5] > 0,
                progress=progress,
            )
            for number, key, headers, expires_at, progress in found
        }

    async def renew(self, ids: Sequence[str], fence: int, seconds: float, phase: State) -> Renewed:
        numbers = [id_number(each) for each in ids]

        def prolong(connection: sqlite3.Connection) -> Renewed:
            text = json.dumps(numbers)
            claim = self._claims.get(fence)
            if claim is not None:
                claim.until = max(claim.until, self._now() + int(seconds * 1e6))
                connection.execute("UPDATE claims SET until = ? WHERE fence = ?", (claim.until, fence))
                for before in (State.ENQUEUED, State.CLAIMED):
                    moved = connection.execute(
                        f"UPDATE tasks SET state = ? WHERE id IN {_IDS} AND fence = ? AND state = ? AND state < ?",
                        (phase, text, fence, before, phase),
                    ).rowcount
                    self._counts[before] -= moved
                    self._counts[phase] += moved
            rows = connection.execute(
                f"SELECT id, flags FROM tasks WHERE id IN {_IDS} AND fence = ? AND state IN (2, 3, 4)",
                (text, fence),
            ).fetchall()
            held = {number for number, _ in rows}
            return Renewed(
                seconds,
                [each for each, number in zip(ids, numbers, strict=True) if number not in held],
                [id_text(number) for number, flags in rows if flags & CANCEL],
            )

        return await self._file.write(prolong)

    # Settling.

    async def settle(self, fence: int, succeeded: Sequence[str], others: Sequence[Settle]) -> list[str]:
        def end(connection: sqlite3.Connection) -> list[str]:
            refused = self._succeed(connection, fence, succeeded) if succeeded else []
            return refused + self._end(connection, fence, others)

        return await self._file.write(end)

    def _succeed(self, connection: sqlite3.Connection, fence: int, ids: Sequence[str]) -> list[str]:
        numbers = [int(each, 16) for each in ids]
        text = json.dumps(numbers)
        now = self._now()
        left = len(numbers)
        for before in (State.ENQUEUED, State.PROCESSING, State.CLAIMED):
            moved = connection.execute(
                f"UPDATE tasks SET state = 10, ended = ? WHERE id IN {_IDS} AND fence = ? AND state = ?",
                (now, text, fence, before),
            ).rowcount
            self._counts[before] -= moved
            self._counts[State.SUCCESS] += moved
            left -= moved
            if not left:
                break
        refused: list[str] = []
        if left:
            rows = connection.execute(
                f"SELECT id FROM tasks WHERE id IN {_IDS} AND fence = ? AND state = 10",
                (text, fence),
            ).fetchall()
            done = {number for (number,) in rows}
            refused = [each for each, number in zip(ids, numbers, strict=True) if number not in done]
            numbers = [number for number in numbers if number in done]
            text = json.dumps(numbers)
        connection.execute(f"DELETE FROM entities WHERE id IN {_IDS}", (text,))
        self._release_keys(connection, text)
        self._settled(connection, fence, len(numbers))
        return refused

    def _settled(self, connection: sqlite3.Connection, fence: int, count: int) -> None:
        """A claim whose items are all settled is over."""
        claim = self._claims.get(fence)
        if claim is not None:
            claim.left -= count
            if claim.left <= 0:
                connection.execute("DELETE FROM claims WHERE fence = ?", (fence,))
                del self._claims[fence]

    def _end(self, connection: sqlite3.Connection, fence: int, others: Sequence[Settle]) -> list[str]:
        refused: list[str] = []
        over: list[int] = []
        moved = 0
        now = self._now()
        for each in others:
            number = id_number(each.id)
            row = connection.execute("SELECT state, fence, lane, flags FROM tasks WHERE id = ?", (number,)).fetchone()
            if row is None or row[1] != fence or State(row[0]) not in LEASED:
                if row is None or row[1] != fence or row[0] != each.state:
                    refused.append(each.id)
                continue
            before, _, lane, flags = row
            state = State.CANCELLED if flags & CANCEL and each.state in WAITING else each.state
            terminal = state in TERMINAL
            due = None if terminal else max(int(each.due * 1e6), 0) or now
            charged = (each.attempts, each.crashes, each.throttles)
            connection.execute(
                "UPDATE tasks SET state = ?, next_trigger = ?, ended = ?, attempts = max(attempts, ?),"
                " crashes = max(crashes, ?), throttles = max(throttles, ?) WHERE id = ?",
                (state, due, now if terminal else None, *charged, number),
            )
            connection.execute(
                "UPDATE entities SET reason = ?2, progress = ?3, payload = iif(?4, x'', payload) WHERE id = ?1",
                (number, each.reason[:4096], each.progress[:1024], terminal),
            )
            self._counts[State(before)] -= 1
            self._counts[state] += 1
            moved += 1
            if due is None:
                over.append(number)
            else:
                self._sooner(lane, due)
        if over:
            self._release_keys(connection, json.dumps(over))
        self._settled(connection, fence, moved)
        return refused

    def _release_keys(self, connection: sqlite3.Connection, ids: str) -> None:
        """The next item of each ended one's key is due when it was to be."""
        if not self._keyed:
            return
        keys = [
            key
            for (key,) in connection.execute(f"DELETE FROM keyed WHERE id IN {_IDS} RETURNING key", (ids,)).fetchall()
        ]
        self._keyed -= len(keys)
        for key in set(keys):
            row = connection.execute("SELECT id, due FROM keyed WHERE key = ? ORDER BY id LIMIT 1", (key,)).fetchone()
            if row is None:
                continue
            number, due = row
            lane = connection.execute(
                "UPDATE tasks SET next_trigger = ? WHERE id = ? AND next_trigger = ? RETURNING lane",
                (due, number, BLOCKED),
            ).fetchone()
            if lane is not None:
                self._sooner(lane[0], due)

    # Asking.

    async def status(self, ids: Sequence[str]) -> list[Status | None]:
        text = json.dumps([id_number(each) for each in ids])

        def load(connection: sqlite3.Connection) -> dict[int, Any]:
            rows = connection.execute(
                "SELECT t.id, t.state, t.kind, t.attempts, t.crashes, t.next_trigger, t.ended, e.reason, e.progress,"
                " k.due, c.until FROM tasks AS t LEFT JOIN entities AS e ON e.id = t.id"
                " LEFT JOIN keyed AS k ON k.id = t.id LEFT JOIN claims AS c ON c.fence = t.fence AND t.state < 10"
                f" WHERE t.id IN {_IDS}",
                (text,),
            ).fetchall()
            return {row[0]: row[1:] for row in rows}

        found = await self._file.read(load)
        return [self._status(each, found.get(id_number(each))) for each in ids]

    def _status(self, id: str, row: Any) -> Status | None:
        if row is None:
            return None
        state, kind, attempts, crashes, trigger, ended, reason, progress, due, until = row
        return Status(
            id=id,
            state=State(state),
            kind=self._kinds.kinds[kind],
            attempts=attempts,
            crashes=crashes,
            created_at=created_at(id_number(id)),
            due=((due if trigger == BLOCKED else trigger or until) or 0) / 1e6,
            ended_at=(ended or 0) / 1e6,
            reason=reason or "",
            progress=progress or "",
        )

    async def cancel(self, ids: Sequence[str]) -> list[str]:
        def mark(connection: sqlite3.Connection) -> list[str]:
            return [self._cancel(connection, id_number(each)) for each in ids]

        return await self._file.write(mark)

    def _cancel(self, connection: sqlite3.Connection, number: int) -> str:
        row = connection.execute("SELECT state FROM tasks WHERE id = ?", (number,)).fetchone()
        if row is None:
            return "unknown"
        state = State(row[0])
        if state in TERMINAL:
            return "ended"
        if state in LEASED:
            connection.execute("UPDATE tasks SET flags = flags | ? WHERE id = ?", (CANCEL, number))
            return "requested"
        connection.execute(
            "UPDATE tasks SET state = ?, next_trigger = NULL, ended = ? WHERE id = ?",
            (State.CANCELLED, self._now(), number),
        )
        connection.execute("UPDATE entities SET payload = x'', reason = 'cancelled' WHERE id = ?", (number,))
        self._counts[state] -= 1
        self._counts[State.CANCELLED] += 1
        self._release_keys(connection, json.dumps([number]))
        return "cancelled"

    async def counts(self) -> dict[str, int]:
        return {state.label: self._counts[state] for state in State}

    async def sweep(self) -> int:
        """Forgets ended items beyond the retention, a bounded number at each call; returns how many. The owner calls
        it now and then."""

        def forget(connection: sqlite3.Connection) -> int:
            ended = sum(self._counts[state] for state in TERMINAL)
            too_many = ended > self._config.keep_ended
            oldest = self._now() - int(self._config.retention * 1e6)
            rows = connection.execute(
                "SELECT id, state, coalesce(ended, 0), flags FROM tasks WHERE id > ? ORDER BY id LIMIT ?",
                (self._swept, SWEEP),
            ).fetchall()
            self._swept = rows[-1][0] if len(rows) == SWEEP else 0
            gone = [row for row in rows if row[1] >= State.SUCCESS and (too_many or row[2] < oldest)]
            if too_many:
                gone = gone[: ended - self._config.keep_ended]
            text = json.dumps([row[0] for row in gone])
            for table in ("tasks", "entities", "dedupe"):
                connection.execute(f"DELETE FROM {table} WHERE id IN {_IDS}", (text,))
            for row in gone:
                self._counts[State(row[1])] -= 1
            return len(gone)

        return await self._file.write(forget)


def _headers(text: str) -> Headers:
    return tuple((name, value) for name, value in json.loads(text)) if text else ()
