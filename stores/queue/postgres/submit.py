"""A submission to PostgreSQL, together with a claim for a lease that waits (`hand_over.py`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import psycopg

from ....model.tenant_key import KeyRule, tenant_key
from ...postgres.run_statement import RunStatement
from ..ids import Ids
from ..queue import NewItem
from . import statements as call
from .kinds import PostgresKinds
from .rows import callback_rows, new_rows

#: Most tries of a submission whose new ids are taken.
NEW_IDS = 3


class StoredItems(NamedTuple):
    """Items as they were written: the new ids in order; the first id of each duplicate, by its new one; the server's
    time (µs); and the rows of the claim."""

    ids: Sequence[int]
    first: dict[int, int]
    moment: int
    claim: Sequence[tuple[Any, ...]]


async def stored(
    rows: RunStatement,
    kinds: PostgresKinds,
    ids: Ids,
    items: Sequence[NewItem],
    times: tuple[int | None, int],
    claim: Sequence[Any],
    rule: KeyRule = tenant_key,
) -> StoredItems:
    """Stores the items in one statement. `times`: µs to use instead of the server's clock, or None, and this host's ms.
    `claim`: arguments of a claim in the same transaction, or empty; with callbacks there is no claim."""
    for attempt in range(NEW_IDS):
        numbers = ids.take(len(items), times[1])
        arguments: tuple[Any, ...] = (times[0], *new_rows(kinds, numbers, items, rule))
        told = callback_rows(kinds, numbers, items)
        if told is not None:
            statement = call.SUBMIT_WITH_CALLBACKS
            arguments += told
        else:
            statement = call.SUBMIT_AND_CLAIM if claim else call.SUBMIT
            arguments += tuple(claim[1:])  # one time for both
        try:
            found = await rows(statement, arguments, "a submission")
        except psycopg.errors.UniqueViolation:  # another node made the same ids in this millisecond
            if attempt == NEW_IDS - 1:
                raise
            continue
        first = {item: known for item, known, *_ in found if item is not None}
        return StoredItems(numbers, first, first.pop(-1), [row[call.CLAIMED :] for row in found if row[0] is None])
    raise AssertionError
