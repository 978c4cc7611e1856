"""Mistakes that somebody might make, which the simulation must find. `tailrace simulate --bug NAME` shows it."""

from __future__ import annotations

from ..planting import BREACHES, BUGS, planted
from . import (
    copies,
    detached,
    engine,
    files,
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
)

__all__ = [
    "BREACHES",
    "BUGS",
    "copies",
    "detached",
    "engine",
    "files",
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
    "planted",
]
