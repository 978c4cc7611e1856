"""Jobs that are open for too long: THE rule of which trees are cancelled. A tree whose maker never sealed
it would be open for ever otherwise, and count among those that may be."""

from __future__ import annotations

from typing import NamedTuple

from ....model.units import duration_text

#: Wall clock µs of 2020, before any tree was made: what seems to be older was made before the host's clock was set, as
#: at the boot of a machine without a battery. Its age is not known, so it stays.
EARLIEST = 1_577_836_800_000_000
#: Trees that one step cancels.
CANCELLED = 100


class OverdueTrees(NamedTuple):
    """Open trees made since `since` and before `before` (wall clock µs) are cancelled; `why` tells of it."""

    since: int
    before: int
    why: str


def overdue(now: int, max_age: float) -> OverdueTrees:
    """What is open for too long now (wall clock µs), where a tree may be open for so many seconds."""
    why = f"it was open for longer than {duration_text(max_age)} (job_max_age of stores.yaml)"
    return OverdueTrees(EARLIEST, now - int(max_age * 1e6), why)
