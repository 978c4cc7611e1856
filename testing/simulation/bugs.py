"""Mistakes that somebody might make: what the simulation must find. `tailrace simulate --bug NAME` shows it."""

from __future__ import annotations

from . import (
    bugs_copies,
    bugs_detached,
    bugs_engine,
    bugs_files,
    bugs_laws,
    bugs_leases,
    bugs_ledger,
    bugs_order,
    bugs_outbox,
    bugs_parents,
    bugs_redrives,
    bugs_rights,
    bugs_schedules,
    bugs_several,
    bugs_spool,
    bugs_stores,
)
from .planting import BREACHES, BUGS, planted

__all__ = [
    "BREACHES",
    "BUGS",
    "bugs_copies",
    "bugs_detached",
    "bugs_engine",
    "bugs_files",
    "bugs_laws",
    "bugs_leases",
    "bugs_ledger",
    "bugs_order",
    "bugs_outbox",
    "bugs_parents",
    "bugs_redrives",
    "bugs_rights",
    "bugs_schedules",
    "bugs_several",
    "bugs_spool",
    "bugs_stores",
    "planted",
]
