"""Redrive of an item in its own tree: THE rule. Only a failed item can be redriven, and only while its job is open."""

from __future__ import annotations

from typing import NamedTuple

from .item_state import ItemState
from .refusals import no_redrive


class ItemStands(NamedTuple):
    """The state of an item's row; whether its job is complete; whether its tree ends before its time."""

    state: int
    complete: bool
    ending: bool


def why_not(item: ItemStands, tree: str) -> str:
    """The reason why an item cannot be tried again; empty: it can."""
    if item.state != ItemState.FAILED:
        return no_redrive(tree, "succeeded" if item.state == ItemState.SUCCEEDED else "pending")
    if item.complete:
        return no_redrive(tree, "complete")
    return no_redrive(tree, "ends") if item.ending else ""


def token_of(token: str, workload: str, first: str) -> str:
    """The token of an addition that a run of a workload makes, as if the first workload of its item made it. So a
    redriven item does not add again what its former workload added."""
    own = f"in-{workload}-"
    return f"in-{first}-{token.removeprefix(own)}" if token.startswith(own) else token
