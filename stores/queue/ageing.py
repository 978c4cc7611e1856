"""Ages of what waits, from the lanes that an engine looked at: collections of a function and priority are one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from .queue import Ageing


def folded(lanes: Mapping[int, tuple[str, int, str]], found: Iterable[tuple[int, float, int]]) -> list[Ageing]:
    """`found`: of each lane its number, for how many seconds its oldest due item has waited, and the highest attempt of
    a live one. `lanes` says what each number means; unknown ones are left out, and so is what has neither."""
    of: dict[tuple[str, int], tuple[float, int]] = {}
    for lane, waited, attempts in found:
        address = lanes.get(lane)
        if address is not None and (waited > 0 or attempts > 0):
            function, priority, _ = address
            oldest, highest = of.get((function, priority), (0.0, 0))
            of[function, priority] = (max(oldest, waited), max(highest, attempts))
    return [Ageing(*cell, *ages) for cell, ages in of.items()]
