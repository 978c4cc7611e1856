"""Mistakes that somebody might make: what the simulation must find. `tailrace simulate --bug NAME` shows it."""

from __future__ import annotations

from . import bugs_detached, bugs_leases, bugs_ledger, bugs_order, bugs_schedules, bugs_several, bugs_stores
from .planting import BUGS, planted

__all__ = [
    "BUGS",
    "bugs_detached",
    "bugs_leases",
    "bugs_ledger",
    "bugs_order",
    "bugs_schedules",
    "bugs_several",
    "bugs_stores",
    "planted",
]
