"""The name and the columns of an outbox: a table in the same database as the data that a workload belongs to, so that
both are written in one transaction."""

from __future__ import annotations

import re

from ...model.errors import InvalidRequest

#: Default names of the table in an application's database, and of the schema of a queue on PostgreSQL.
TABLE = "tailrace_outbox"
SCHEMA = "tailrace"

#: Columns that an INSERT gives; the others have defaults. `place` is the order within a key; `due_at` and `expires_at`
#: are seconds since 1970, 0: at once and never; a row with a `reason` was set aside.
COLUMNS = "token, function, payload, priority, collection, tenant, key, dedupe_key, headers, due_at, expires_at"

_PART = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")


def quoted(name: str) -> str:
    """The name of a table, quoted for a statement, with or without a schema before it. Raises InvalidRequest for a text
    that is no such name."""
    parts = name.split(".")
    if len(parts) > 2 or not all(_PART.fullmatch(part) for part in parts):
        raise InvalidRequest(
            f"table {name!r}: expected letters, digits and underscores, at most 63, perhaps with a schema and a dot"
        )
    return ".".join(f'"{part}"' for part in parts)
