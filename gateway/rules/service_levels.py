"""Service levels: how long due work of each priority may wait, and how many attempts it may take, before an alert.

The default times are those that backoff reaches at the allowed attempt (DJ): an item that failed as often as its level
allows has been under way for about as long as its level allows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ...model.alert import LevelOverview
from ...model.priority import Priority


class ServiceLevel(NamedTuple):
    """The allowance of a priority: seconds that a due item waits, and attempts that a live one has spent."""

    waited: float
    attempts: int


def judged(ages: Iterable[tuple[str, int, float, int]], levels: Mapping[Priority, ServiceLevel]) -> list[LevelOverview]:
    """Each service level beside the worst function of its priority. `ages`: function, rank, seconds that the oldest due
    item has waited, highest attempt. A value exactly as allowed is within the level; unknown priorities (of a later
    version) are left out."""
    found = {
        priority: LevelOverview(priority.label, waited_allowed=level.waited, attempts_allowed=level.attempts)
        for priority, level in sorted(levels.items())
    }
    beyond: dict[Priority, set[str]] = {priority: set() for priority in found}
    for function, rank, waited, attempts in sorted(ages):
        if rank not in found:
            continue
        one = found[Priority(rank)]
        if waited > one.waited:
            one.waited, one.waited_by = waited, function
        if attempts > one.attempts:
            one.attempts, one.attempts_by = attempts, function
        if waited > one.waited_allowed or attempts > one.attempts_allowed:
            beyond[Priority(rank)].add(function)
    for priority, one in found.items():
        one.beyond = len(beyond[priority])
    return list(found.values())
