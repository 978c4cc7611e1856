"""Settlements on PostgreSQL: what a claim's items become, and plain successes of several claims in one transaction."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple

from ....model.claim import Settle
from ...postgres.arrays import numbers, texts
from ..ids import id_number
from ..lifecycle import LEASED
from ..queue import PROGRESS, REASON
from ..settlements import Succeeded
from . import statements as call
from .claims import ClaimsOut

#: One statement, with S. for the schema, and what it is about.
Rows = Callable[[str, Sequence[Any], str], Awaitable[list[tuple[Any, ...]]]]


class SettleReply(NamedTuple):
    """The items refused of each settlement, and whether anything waits now that may be due."""

    refused: list[list[str]]
    again: bool


async def settled(
    rows: Rows, out: ClaimsOut, at: int | None, fence: int, succeeded: Sequence[str], others: Sequence[Settle]
) -> SettleReply:
    """Ends hand-outs of one claim. `at`: µs instead of the server's clock."""
    plain = [id_number(each) for each in succeeded]
    ends = [id_number(each.id) for each in others]
    leaving = plain + [number for number, each in zip(ends, others, strict=True) if each.state not in LEASED]
    [(refused, again)] = await rows(
        call.SETTLE,
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
        ),
        "a settlement",
    )
    out.ended(fence, leaving)
    gone = set(refused)
    everybody = (*succeeded, *(other.id for other in others))
    return SettleReply([[each for each in everybody if id_number(each) in gone]], again)


async def succeeded_together(rows: Rows, out: ClaimsOut, at: int | None, group: Sequence[Succeeded]) -> SettleReply:
    """Ends items of several claims that ended well: all of them or none."""
    ids = [[id_number(each) for each in succeeded] for _, succeeded in group]
    claims = [(fence, leaving) for (fence, _), leaving in zip(group, ids, strict=True)]
    over = [number for fence, leaving in claims for number in out.over_with(fence, leaving)]
    columns = numbers(fence for fence, _ in claims), texts([numbers(leaving) for _, leaving in claims])
    everybody = numbers(each for leaving in ids for each in leaving)
    found = await rows(call.SUCCEED, (numbers(over), everybody, *columns, at), "a settlement")
    for fence, leaving in claims:
        out.ended(fence, leaving)
    return SettleReply(
        [
            [each for each in succeeded if id_number(each) in gone]
            for (_, succeeded), (gone, _) in zip(group, found, strict=True)
        ],
        any(again for _, again in found),
    )
