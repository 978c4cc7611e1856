"""Floods in the queue on SQLite: so many items of one tenant that they stand before another tenant's next item.

While every tenant with due items is among the next few items of its lane (sixteen for each tenant), time order serves
all of them, and nothing is stored for it. Tenants take turns only behind a flood (tenant_turns.py). Turns need an index
by kind, which is made then: it makes each write dearer, because rows that are written together lie apart in it.
"""

from __future__ import annotations

import sqlite3

from .rows import json_text

#: Items for each tenant, fewest and most, among which each tenant's next item has to be. In a random mix a tenant is
#: missing there in one look of thousands.
DEPTH, LEAST, MOST = 16, 256, 1 << 14

#: The index is dropped so many µs after the last flood, once fewer than so many items wait.
KEPT, FEW = 60_000_000, 10_000


class Watch:
    """Signs of a flood in one lane.

    lasts  kind → at least the trigger of its last waiting item; a kind that is not in it has no waiting item
    front  the kinds that a look found near the head
    left   items that may be stored or claimed until the next look; `deep`: the last look found as many as it looked for
    news   an item was stored whose kind was not in front
    shut   the kinds that were closed at the last look
    """

    __slots__ = ("deep", "front", "lasts", "left", "news", "shut")

    def __init__(self) -> None:
        self.lasts: dict[int, int] = {}
        self.front: set[int] = set()
        self.left = LEAST
        self.deep = self.news = False
        self.shut: frozenset[int] = frozenset()

    def put(self, kind: int, trigger: int, count: int, now: int) -> None:
        """Notes that so many items of a kind were stored."""
        if trigger > self.lasts.get(kind, -1):
            self.lasts[kind] = trigger
        self.left -= count
        if trigger <= now and kind not in self.front:
            self.news = True

    def asks(self, shut: frozenset[int]) -> bool:
        """Whether it is time for a look."""
        return len(self.lasts) > 1 and (self.left <= 0 or (self.deep and self.news) or self.shut != shut)

    def is_flood(self, connection: sqlite3.Connection, lane: int, first: int, shut: frozenset[int], now: int) -> bool:
        """Looks whether a tenant with due items stands behind a flood, or behind closed tenants. `first`: no item of
        the lane is due before it. Makes the index if a tenant may."""
        lasts = self.lasts = {kind: last for kind, last in self.lasts.items() if last >= first}
        depth = min(MOST, max(LEAST, DEPTH * len(lasts)))
        rows = connection.execute(
            "SELECT kind, count(*), max(next_trigger) FROM (SELECT kind, next_trigger FROM tasks WHERE lane = ?"
            " AND next_trigger BETWEEN ? AND ? ORDER BY next_trigger, id LIMIT ?) GROUP BY kind",
            (lane, first, now, depth),
        ).fetchall()
        found = sum(count for _, count, _ in rows)
        self.front = {kind for kind, _, _ in rows}
        self.shut, self.news, self.deep = shut, False, found == depth
        self.left = depth if self.deep else depth - found
        if not self.deep:
            return False
        end = max(last for _, _, last in rows)
        behind = 2 * sum(count for kind, count, _ in rows if kind in shut) > depth
        absent = [k for k, last in lasts.items() if last >= end and k not in self.front and k not in shut]
        if not (behind or absent):
            return False
        make_index(connection)
        (due,) = connection.execute(
            "SELECT EXISTS (SELECT 1 FROM tasks INDEXED BY tasks_turns"
            " WHERE kind IN (SELECT value FROM json_each(?)) AND next_trigger BETWEEN ? AND ?)",
            (json_text(absent), end, now),
        ).fetchone()
        return behind or bool(due)


def has_index(connection: sqlite3.Connection) -> bool:
    """Whether the index of turns exists."""
    return connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'tasks_turns'").fetchone() is not None


def make_index(connection: sqlite3.Connection) -> None:
    """Makes the index of turns: takes a second for a million waiting items."""
    connection.execute(
        "CREATE INDEX IF NOT EXISTS tasks_turns ON tasks (kind, next_trigger) WHERE next_trigger IS NOT NULL"
    )


def drop_index(connection: sqlite3.Connection) -> None:
    """Drops the index of turns."""
    connection.execute("DROP INDEX IF EXISTS tasks_turns")


def firsts(connection: sqlite3.Connection, kinds: list[int], blocked: int) -> list[tuple[int, int]]:
    """The earliest next trigger of each of these kinds, in ascending order."""
    return connection.execute(
        "SELECT value, (SELECT min(next_trigger) FROM tasks INDEXED BY tasks_turns WHERE kind = value"
        " AND next_trigger < ?) AS first FROM json_each(?) WHERE first IS NOT NULL ORDER BY first",
        (blocked, json_text(kinds)),
    ).fetchall()
