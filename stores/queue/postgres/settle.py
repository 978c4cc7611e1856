"""Settlements on PostgreSQL: the new states of a claim's items, and plain successes of several claims in one
transaction."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import psycopg

from ....model.claim import Settle, State
from ...postgres.arrays import blobs, numbers, texts
from ...postgres.run_statement import RunStatement
from ..ids import id_number, id_text
from ..lifecycle import LEASED
from ..queue import PROGRESS, REASON
from ..shared_settlements import Succeeded
from . import statements as call
from .claims import ClaimsOut
from .submit import NEW_IDS


class SettleReply(NamedTuple):
    """The answer to settlements.

    refused  ids of each settlement that were refused
    again    whether items that wait may be due now
    fed      None, or items of jobs ended, and in these lanes further items are due since `moment` (µs)
    unfit    if asked for: items that failed because no item can be made of their results, with the reason
    """

    refused: list[list[str]]
    again: bool
    fed: list[int] | None
    moment: int
    unfit: Sequence[tuple[str, str]] = ()


async def settled(
    rows: RunStatement,
    out: ClaimsOut,
    at: int | None,
    fence: int,
    succeeded: Sequence[str],
    others: Sequence[Settle],
    *,
    told: bool = False,
) -> SettleReply:
    """Ends leases of items of one claim. `at`: µs to use instead of the server's clock. Results that come with
    successes become items of jobs in the same transaction. The server draws the ids of these; if one is taken, the
    transaction is repeated. `told`: also returns items of whose results no item can be made."""
    results = {id_number(each.id): each.result for each in others if _is_result(each)}
    everybody = (*succeeded, *(other.id for other in others))
    others = [each for each in others if not _is_result(each)] if results else others
    plain = [*map(id_number, succeeded), *results]
    ends = [id_number(each.id) for each in others]
    leaving = plain + [number for number, each in zip(ends, others, strict=True) if each.state not in LEASED]
    [(refused, again, fed, moment, *unfit)] = await _with_new_ids(
        rows,
        call.SETTLE_RESULTS if told else call.SETTLE,
        (
            at,
            fence,
            numbers(plain),
            numbers(out.over_with(fence, leaving)),
            numbers(ends),
            numbers(int(each.state) for each in others),
            numbers(math.ceil(each.delay * 1e6) for each in others),
            numbers(each.attempts for each in others),
            numbers(each.crashes for each in others),
            numbers(each.throttles for each in others),
            texts([each.reason[:REASON] for each in others]),
            texts([each.progress[:PROGRESS] for each in others]),
            texts([each.outcome for each in others]),
            numbers(results),
            blobs([each or b"" for each in results.values()]),
            *((fence, numbers(results)) if told else ()),
        ),
    )
    out.ended(fence, leaving)
    gone = set(refused)
    refusals = [each for each in everybody if id_number(each) in gone]
    whys = [*zip(map(id_text, unfit[0]), unfit[1], strict=True)] if told else []
    return SettleReply([refusals], again, fed, moment, whys)


async def _with_new_ids(rows: RunStatement, statement: str, arguments: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Runs a settlement, and repeats it if ids that the server drew for items of jobs are taken."""
    for _ in range(NEW_IDS - 1):
        with contextlib.suppress(psycopg.errors.UniqueViolation):
            return await rows(statement, arguments, "a settlement")
    return await rows(statement, arguments, "a settlement")


def _is_result(each: Settle) -> bool:
    return each.result is not None and each.state is State.SUCCESS


async def succeeded_together(
    rows: RunStatement, out: ClaimsOut, at: int | None, group: Sequence[Succeeded]
) -> SettleReply:
    """Ends items of several claims that succeeded: all of them or none."""
    ids = [[id_number(each) for each in succeeded] for _, succeeded in group]
    claims = [(fence, leaving) for (fence, _), leaving in zip(group, ids, strict=True)]
    over = [number for fence, leaving in claims for number in out.over_with(fence, leaving)]
    columns = numbers(fence for fence, _ in claims), texts([numbers(leaving) for _, leaving in claims])
    everybody = numbers(each for leaving in ids for each in leaving)
    found = await _with_new_ids(rows, call.SUCCEED, (numbers(over), everybody, *columns, at))
    for fence, leaving in claims:
        out.ended(fence, leaving)
    return SettleReply(
        [
            [each for each in succeeded if id_number(each) in gone]
            for (_, succeeded), (gone, *_) in zip(group, found, strict=True)
        ],
        any(again for _, again, _, _ in found),
        [lane for lanes in fed for lane in lanes]
        if (fed := [lanes for *_, lanes, _ in found if lanes is not None])
        else None,
        min(moment for *_, moment in found),
    )
