"""The table of an outbox in PostgreSQL, and its inserts; `?` stands for each value of `NewRow`, in order."""

from __future__ import annotations

from ...model.name import NAME_LENGTH, NAME_PATTERN_SQL
from .table import COLUMNS, quoted

_NAME, _MOST = NAME_PATTERN_SQL, NAME_LENGTH


def create(table: str) -> list[str]:
    """Statements that make the table; harmless if it exists."""
    index = quoted(f"{table.rpartition('.')[2][:50]}_going")
    return [
        f"""CREATE TABLE IF NOT EXISTS {quoted(table)} (
    place bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    token text NOT NULL UNIQUE DEFAULT replace(gen_random_uuid()::text, '-', '') CHECK (token ~ '^[0-9a-f]{{32}}$'),
    function text NOT NULL CHECK (function ~ '^{_NAME}$' AND length(function) <= {_MOST}),
    payload bytea NOT NULL DEFAULT '' CHECK (length(payload) <= 4194304),
    priority int NOT NULL DEFAULT 2 CHECK (priority BETWEEN 0 AND 15),
    collection text NOT NULL DEFAULT '' CHECK (collection ~ '^({_NAME})?$' AND length(collection) <= {_MOST}),
    tenant text NOT NULL DEFAULT '' CHECK (tenant ~ '^({_NAME})?$' AND length(tenant) <= {_MOST}),
    key text NOT NULL DEFAULT '' CHECK (length(key) <= {_MOST}),
    dedupe_key text NOT NULL DEFAULT '' CHECK (length(dedupe_key) <= {_MOST}),
    headers text NOT NULL DEFAULT '' CHECK (length(headers) <= 8192),
    due_at float8 NOT NULL DEFAULT 0 CHECK (due_at >= 0),
    expires_at float8 NOT NULL DEFAULT 0 CHECK (expires_at >= 0),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    reason text NOT NULL DEFAULT ''
)""",
        f"CREATE INDEX IF NOT EXISTS {index} ON {quoted(table)} (place) WHERE reason = ''",
    ]


def into_queue(schema: str) -> str:
    """The call of the schema's `enqueue` (stores/postgres/migrations/0003_outbox.sql), which returns the id of the
    future item. The token is not needed, because there the row itself becomes the item."""
    return (
        f"SELECT {quoted(schema)}.enqueue(function => a.f, payload => a.p, priority => a.r, collection => a.c,"
        " tenant => a.t, key => a.k, dedupe_key => a.d, headers => a.h, delay => a.w, at => a.m, expires_after => a.e)"
        " FROM (SELECT ?::text, ?::text AS f, ?::bytea AS p, ?::int AS r, ?::text AS c, ?::text AS t, ?::text AS k,"
        " ?::text AS d, ?::text AS h, ?::float8 AS w, ?::float8 AS m, ?::float8 AS e) AS a"
    )


def into_table(table: str) -> str:
    """The insert into an outbox; times are the server's."""
    return (
        f"INSERT INTO {quoted(table)} ({COLUMNS})"
        " SELECT o, f, p, r, c, t, k, d, h, s, CASE WHEN e >= 0 THEN greatest(s, n) + e ELSE 0 END FROM"
        " (SELECT a.*, CASE WHEN m > 0 THEN m WHEN w > 0 THEN n + w ELSE 0 END AS s FROM"
        " (SELECT extract(epoch FROM clock_timestamp())::float8 AS n, ?::text AS o, ?::text AS f, ?::bytea AS p,"
        " ?::int AS r, ?::text AS c, ?::text AS t, ?::text AS k, ?::text AS d, ?::text AS h, ?::float8 AS w,"
        " ?::float8 AS m, ?::float8 AS e) AS a) AS b"
    )
