"""Searches for workloads of a queue."""

from __future__ import annotations

from dataclasses import dataclass

from .claim import State

#: Workloads of one page at most.
MOST_FOUND = 1000


@dataclass(frozen=True, slots=True)
class Search:
    """A search: all that is given must fit. The newest come first.

    states        empty: any
    key           the ordering key. What has ended has given its key up: it is not found by it
    since, until  when it was submitted, wall clock seconds, from and before; 0: at any time
    after         where the page before ended (`Page.after`); empty: at the newest
    limit         workloads of one page
    """

    function: str = ""
    tenant: str = ""
    states: tuple[State, ...] = ()
    key: str = ""
    since: float = 0.0
    until: float = 0.0
    after: str = ""
    limit: int = 100
