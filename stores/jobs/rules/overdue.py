"""Jobs that are open for too long: THE rule of which trees are cancelled. A tree whose maker never seals it would
otherwise be open for ever, and count against the bound of open trees."""

from __future__ import annotations

from typing import NamedTuple

from ....model.units import duration_text

#: Wall clock µs of 2020, before any tree was made. A tree that seems to be older was made before the host's clock was
#: set, for example at the boot of a machine without a battery. Its age is not known, so it stays.
EARLIEST = 1_577_836_800_000_000
#: Most trees that one step cancels.
CANCELLED = 100


class OverdueTrees(NamedTuple):
    """A range of creation times, from `since` to before `before` (wall clock µs): open trees made in it are cancelled.
    `why`: the reason for their users."""

    since: int
    before: int
    why: str


def overdue(now: int, max_age: float) -> OverdueTrees:
    """The trees that are too old at `now` (wall clock µs), if a tree may be open for `max_age` seconds."""
    why = f"it was open for longer than {duration_text(max_age)} (job_max_age of stores.yaml)"
    return OverdueTrees(EARLIEST, now - int(max_age * 1e6), why)
