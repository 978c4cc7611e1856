"""Commits of a write: whether they are waited for, and that a repeated write waits for as much as the first one did.

A server with a synchronous standby confirms a commit when the standby has it. While the standby is away a write waits
until its caller gives up, and is committed all the same, but for the standby. The caller repeats it. The repeat finds
its rows and writes nothing, and PostgreSQL confirms at once what wrote nothing: the caller would let go of what the
standby does not have. So each write logs something of its own where a standby is waited for.
"""

from __future__ import annotations

from functools import lru_cache

#: Statements that are remembered in both forms.
REMEMBERED = 256
#: Prefix of the messages in the write-ahead log; logical decoding shows them to whoever asks for messages.
PREFIX = "tailrace"
#: Whether a standby is waited for is asked each time, since failover managers switch it while connections last.
_LOGGED = (
    "(SELECT CASE WHEN current_setting('synchronous_standby_names') <> ''"
    " AND current_setting('synchronous_commit') NOT IN ('off', 'local')"
    f" THEN pg_logical_emit_message(true, '{PREFIX}', '') END AS logged OFFSET 0) AS something"
)
_NOT_WAITING = "set_config('synchronous_commit', 'off', true)"


@lru_cache(REMEMBERED)
def confirmed(statement: str) -> str:
    """A write in the form SELECT … FROM S.function(…), whose commit is waited for also where its rows are there already
    from a write whose end is unknown."""
    return _beside(statement, _LOGGED)


@lru_cache(REMEMBERED)
def relaxed(statement: str) -> str:
    """A call in the form SELECT … FROM S.function(…), whose commit is not waited for."""
    return _beside(statement, _NOT_WAITING)


def _beside(statement: str, what: str) -> str:
    return statement.replace(" FROM S.", f" FROM {what}, S.", 1)
