"""Standbys of a server, as far as a promotion is concerned: a start says once what one may lose."""

from __future__ import annotations

import logging
from typing import Any

from psycopg import AsyncConnection

_LOG = logging.getLogger("tailrace.stores")


def promotion_loses(server: str, names: str, commit: str, standbys: int) -> str:
    """A sentence on the promotion of a standby; empty: there is none. `names`: synchronous_standby_names; `commit`:
    synchronous_commit."""
    if names and commit not in ("off", "local"):
        return (
            f"{server} waits for {names}: a promotion of a standby that it waited for loses nothing that was "
            "confirmed; while it is away nothing is, and what waits is spooled"
        )
    if not standbys:
        return ""
    why = f"synchronous_commit is {commit}" if names else "synchronous_standby_names is empty"
    return (
        f"{server} does not wait for its standbys ({standbys} now; {why}): a promotion loses accepted workloads that "
        "had not reached the promoted one (see docs/postgres.md)"
    )


async def tell_of_promotion(connection: AsyncConnection[tuple[Any, ...]], server: str, *, durable: bool) -> None:
    """Says what a promotion of a standby may lose. `durable`: commits are waited for."""
    cursor = await connection.execute(
        "SELECT current_setting('synchronous_standby_names'), current_setting('synchronous_commit'),"
        " (SELECT count(*) FROM pg_stat_replication)::int"
    )
    row = await cursor.fetchone()
    assert row is not None
    names, commit, standbys = row
    if said := promotion_loses(server, names, commit if durable else "off", standbys):
        _LOG.info("%s", said)
