"""Mistakes that somebody might make, which the simulation must find. `tailrace simulate --bug NAME` shows it."""

from __future__ import annotations

from ..planting import BREACHES, BUGS, planted
from . import (
    copies,
    detached,
    engine,
    files,
    kept,
    laws,
    leases,
    ledger,
    limits,
    order,
    outbox,
    parents,
    redrives,
    rights,
    schedules,
    several,
    spool,
    stores,
    trees,
    verdicts,
)

__all__ = [
    "BREACHES",
    "BUGS",
    "copies",
    "detached",
    "engine",
    "files",
    "kept",
    "laws",
    "leases",
    "ledger",
    "limits",
    "order",
    "outbox",
    "parents",
    "redrives",
    "rights",
    "schedules",
    "several",
    "spool",
    "stores",
    "trees",
    "verdicts",
    "planted",
]
