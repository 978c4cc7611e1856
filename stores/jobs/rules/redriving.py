"""Redrive of an item in its own tree: only one that failed, and only while its job is open. THE rule."""

from __future__ import annotations

from typing import NamedTuple

from .item_state import ItemState
from .refusals import no_redrive


class ItemStands(NamedTuple):
    """An item as its row says; whether its job is complete, and its tree ends before its time."""

    state: int
    complete: bool
    ending: bool


def why_not(item: ItemStands, tree: str) -> str:
    """Why an item keeps the end that it has; empty: it may be tried again."""
    if item.state != ItemState.FAILED:
        return no_redrive(tree, "succeeded" if item.state == ItemState.SUCCEEDED else "pending")
    if item.complete:
        return no_redrive(tree, "complete")
    return no_redrive(tree, "ends") if item.ending else ""


def token_of(token: str, workload: str, first: str) -> str:
    """The token of an addition that a run of a workload makes: as if the first workload of its item made it, so that no
    life of an item adds again what a former one added."""
    own = f"in-{workload}-"
    return f"in-{first}-{token.removeprefix(own)}" if token.startswith(own) else token
