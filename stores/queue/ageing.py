"""Ages of waiting work, folded from the lanes that an engine looked at: the collections of one function and priority
count as one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from .queue import Ageing


def folded(lanes: Mapping[int, tuple[str, int, str]], found: Iterable[tuple[int, float, int]]) -> list[Ageing]:
    """Ages by function and priority; cells with neither a due item nor an attempt are left out.

    found  number of each lane, seconds that its oldest due item has waited, and the highest attempt of a live item
    lanes  function, priority and collection of each number; lanes that are missing here are left out
    """
    of: dict[tuple[str, int], tuple[float, int]] = {}
    for lane, waited, attempts in found:
        address = lanes.get(lane)
        if address is not None and (waited > 0 or attempts > 0):
            function, priority, _ = address
            oldest, highest = of.get((function, priority), (0.0, 0))
            of[function, priority] = (max(oldest, waited), max(highest, attempts))
    return [Ageing(*cell, *ages) for cell, ages in of.items()]
