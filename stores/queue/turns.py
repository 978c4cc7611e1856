"""Turns of lanes in a lease that may take only a limited number of items: priorities first, a small share kept for the
lower ones, and fair turns between the lanes of one priority. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import NamedTuple


class ReadyLane(NamedTuple):
    """A lane that has due items: its number, the rank of its priority, and how many of its items may be taken."""

    lane: int
    priority: int
    limit: int


def turns(ready: Sequence[ReadyLane], total: int, low_share: float, turn: int) -> list[ReadyLane]:
    """The order in which lanes are visited, and how many items each visit may take at most.

    Higher priorities come first but leave `low_share` of the total to the lower ones together; if that is less than one
    item, only every n-th call leaves one. Lanes of one priority take turns, and each call starts at another lane
    (`turn` rises by one). The limits together do not exceed the total.
    """
    plan: list[ReadyLane] = []
    left = total
    ranks = sorted({lane.priority for lane in ready})
    share = total * low_share
    reserve = min(total, int((turn + 1) * share) - int(turn * share))
    for rank in ranks:
        level = [lane for lane in ready if lane.priority == rank]
        offset = turn % len(level)
        level = level[offset:] + level[:offset]
        budget = left if rank == ranks[-1] else left - reserve
        if budget <= 0:
            continue
        takes = _shares([lane.limit for lane in level], budget)
        plan += [ReadyLane(lane, rank, take) for (lane, _, _), take in zip(level, takes, strict=False)]
        left -= sum(takes)
    return plan


def limits_in_turn(ready: Sequence[ReadyLane], total: int, low_share: float, turn: int) -> dict[int, int]:
    """The plan of `turns` as the number of items that each lane may give, in the order of its first visit. Lanes for
    which nothing was left come last, with 0: a server lets them have items that the others lacked."""
    limits: dict[int, int] = {}
    for each in turns(ready, total, low_share, turn):
        limits[each.lane] = limits.get(each.lane, 0) + each.limit
    for each in sorted(ready, key=attrgetter("priority")):
        limits.setdefault(each.lane, 0)
    return limits


def _shares(limits: Sequence[int], budget: int) -> list[int]:
    """Gives each limit an equal chunk of the budget, in order, until it is used up; then spreads what is left over the
    limits that allow more."""
    chunk = -(-budget // len(limits))
    takes: list[int] = []
    for limit in limits:
        if budget <= 0:
            return takes
        takes.append(min(limit, chunk, budget))
        budget -= takes[-1]
    for index, limit in enumerate(limits):
        if budget <= 0:
            break
        more = min(limit - takes[index], budget)
        takes[index] += more
        budget -= more
    return takes
