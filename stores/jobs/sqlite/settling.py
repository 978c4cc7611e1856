"""Settlements while a tree is open: the transaction that ends an item also makes items of its result."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from ....model.claim import Settle
from ...queue.ids import id_text
from ...queue.sqlite.memory import Memory
from ...queue.sqlite.settle import end, succeed
from .advance import advance
from .ends import results_of


def settle_with_jobs(
    connection: sqlite3.Connection,
    memory: Memory,
    fence: int,
    succeeded: Sequence[str],
    others: Sequence[Settle],
    now: int,
) -> list[str]:
    """Settles as `Queue.settle` does, then does due steps of the jobs."""
    results, others = results_of(connection, memory, others)
    won = [*succeeded, *map(id_text, results)]
    refused = succeed(connection, memory, fence, won, now, results) if won else []
    refused += end(connection, memory, fence, others, now)
    advance(connection, memory, now)
    return refused
