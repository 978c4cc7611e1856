"""Floods in the queue on SQLite: one tenant's items that stand before another one's next, however many they are.

As long as every tenant that has something due is among the next few items of its lane (sixteen for each tenant), time
order serves all of them, and nothing is kept for it. Only behind a flood do tenants take turns (heads.py). That takes
an index by kind, which is made then: each write costs more by it, because what is written together lies apart there.
"""

from __future__ import annotations

import sqlite3

from .rows import json_text

#: Items for each tenant, fewest and most, among which a tenant's next one has to be: in a random mix somebody is
#: missing there in one of thousands of looks.
DEPTH, LEAST, MOST = 16, 256, 1 << 14

#: µs after the last flood, and items that wait, until the index is given up.
KEPT, FEW = 60_000_000, 10_000


class Watch:
    """Notes on a lane that tell of a flood.

    lasts  not before the trigger of the last item of each kind that waits; who is not there has nothing
    front  the kinds that a look found near the head
    left   items that may be stored or claimed until the next look; `deep`: that many did wait at the last one
    news   something was stored of a kind that was not in front
    shut   the kinds that were closed then
    """

    __slots__ = ("deep", "front", "lasts", "left", "news", "shut")

    def __init__(self) -> None:
        self.lasts: dict[int, int] = {}
        self.front: set[int] = set()
        self.left = LEAST
        self.deep = self.news = False
        self.shut: frozenset[int] = frozenset()

    def put(self, kind: int, trigger: int, count: int, now: int) -> None:
        """So many items were stored."""
        if trigger > self.lasts.get(kind, -1):
            self.lasts[kind] = trigger
        self.left -= count
        if trigger <= now and kind not in self.front:
            self.news = True

    def asks(self, shut: frozenset[int]) -> bool:
        """Whether it is time for a look."""
        return len(self.lasts) > 1 and (self.left <= 0 or (self.deep and self.news) or self.shut != shut)

    def is_flood(self, connection: sqlite3.Connection, lane: int, first: int, shut: frozenset[int], now: int) -> bool:
        """Looks whether somebody who has something due is behind a flood, or behind closed tenants. `first`: a bound of
        what is due in the lane. Makes the index where somebody may be."""
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
    """Whether the index of turns is there."""
    return connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'tasks_turns'").fetchone() is not None


def make_index(connection: sqlite3.Connection) -> None:
    """Makes the index of turns: a second for a million items that wait."""
    connection.execute(
        "CREATE INDEX IF NOT EXISTS tasks_turns ON tasks (kind, next_trigger) WHERE next_trigger IS NOT NULL"
    )


def drop_index(connection: sqlite3.Connection) -> None:
    """Gives the index of turns up."""
    connection.execute("DROP INDEX IF EXISTS tasks_turns")


def firsts(connection: sqlite3.Connection, kinds: list[int], blocked: int) -> list[tuple[int, int]]:
    """Of each of these kinds the earliest next trigger, the first ones first."""
    return connection.execute(
        "SELECT value, (SELECT min(next_trigger) FROM tasks INDEXED BY tasks_turns WHERE kind = value"
        " AND next_trigger < ?) AS first FROM json_each(?) WHERE first IS NOT NULL ORDER BY first",
        (blocked, json_text(kinds)),
    ).fetchall()
