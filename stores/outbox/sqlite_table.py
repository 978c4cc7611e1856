"""The table of an outbox in SQLite, and its inserts; `?` stands for each value of `NewRow`, in order.

A file of the queue has one too, which the queue empties by itself (stores/queue/sqlite/collect.py).
"""

from __future__ import annotations

from functools import partial

from .table import COLUMNS, TABLE, quoted

#: The time now, seconds since 1970, by the clock of this host.
NOW = "(julianday('now') - 2440587.5) * 86400.0"


def create(table: str = TABLE) -> list[str]:
    """Statements that make the table; harmless if it exists."""
    return [
        f"""CREATE TABLE IF NOT EXISTS {quoted(table)} (
    place INTEGER PRIMARY KEY AUTOINCREMENT CHECK (place < 4611686018427387904), -- else none would be left for others
    token TEXT NOT NULL UNIQUE DEFAULT (lower(hex(randomblob(16)))) CHECK (length(token) = 32),
    function TEXT NOT NULL CHECK (length(function) BETWEEN 1 AND 200),
    payload BLOB NOT NULL DEFAULT x'' CHECK (length(payload) <= 4194304),
    priority INTEGER NOT NULL DEFAULT 2 CHECK (priority BETWEEN 0 AND 15),
    collection TEXT NOT NULL DEFAULT '' CHECK (length(collection) <= 200),
    tenant TEXT NOT NULL DEFAULT '' CHECK (length(tenant) <= 200),
    key TEXT NOT NULL DEFAULT '' CHECK (length(key) <= 200),
    dedupe_key TEXT NOT NULL DEFAULT '' CHECK (length(dedupe_key) <= 200),
    headers TEXT NOT NULL DEFAULT '' CHECK (length(headers) <= 8192),
    due_at REAL NOT NULL DEFAULT 0 CHECK (due_at >= 0),
    expires_at REAL NOT NULL DEFAULT 0 CHECK (expires_at >= 0),
    created_at REAL NOT NULL DEFAULT ({NOW}),
    reason TEXT NOT NULL DEFAULT ''
) STRICT""",
        f"CREATE INDEX IF NOT EXISTS {quoted(f'{table}_going')} ON {quoted(table)} (place) WHERE reason = ''",
    ]


#: A text factory that accepts any text, with half characters (lone surrogates, PEP 383) for bytes that are not UTF-8.
#: The default one makes a whole answer fail because of one such text.
any_text = partial(str, encoding="utf-8", errors="surrogateescape")


def into_table(table: str) -> str:
    """The insert into an outbox."""
    return (
        f"INSERT INTO {quoted(table)} ({COLUMNS})"
        " SELECT o, f, p, r, c, t, k, d, h, s, CASE WHEN e >= 0 THEN max(s, n) + e ELSE 0.0 END FROM"
        " (SELECT a.*, CASE WHEN m > 0 THEN m WHEN w > 0 THEN n + w ELSE 0.0 END AS s FROM"
        f" (SELECT {NOW} AS n, ? AS o, ? AS f, ? AS p, ? AS r, ? AS c, ? AS t,"
        " ? AS k, ? AS d, ? AS h, ? AS w, ? AS m, ? AS e) AS a) AS b"
    )
