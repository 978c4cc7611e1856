"""Tries: how the last attempts of one item went, kept with its row in the ledger and with its dead letter."""

from __future__ import annotations

from typing import NamedTuple

#: Attempts that are kept, the latest, and characters of each one's reason.
KEPT = 10
REASON_KEPT = 200


class Try(NamedTuple):
    """One attempt that did not end well: when (wall clock seconds), the outcome's name, and why."""

    at: float
    outcome: str
    reason: str


def added(tries: tuple[Try, ...], at: float, outcome: str, reason: str) -> tuple[Try, ...]:
    """Adds one more try, and keeps the last `KEPT`."""
    return (*tries, Try(at, outcome, reason[:REASON_KEPT]))[-KEPT:]
