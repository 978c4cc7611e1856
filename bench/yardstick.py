"""A fixed piece of Python, timed beside every run: it tells the speed of the machine and its interpreter just then.

Rates and waits of two runs compare only where their yardsticks do: a busy neighbour, another machine and an interpreter
that was built without profile-guided optimisation all move them by a tenth and more, and no other figure says so.
"""

from __future__ import annotations

import time
from collections.abc import Callable

#: Rounds of one look; the least counts, since any disturbance makes a round longer.
ROUNDS = 30
#: Things a round makes and uses, a quarter of a millisecond of CPU on a core of 2023.
THINGS = 600


class _Thing:
    """An object as in most Python: one with a few attributes, and a method that looks at them."""

    __slots__ = ("key", "number", "state")

    def __init__(self, number: int) -> None:
        self.number = number
        self.key = number % 17
        self.state = "waiting"

    def settle(self, wanted: int) -> bool:
        if self.key != wanted:
            return False
        self.state = "settled"
        return True


def _round() -> int:
    things = {number: _Thing(number) for number in range(THINGS)}
    settled = [number for wanted in (3, 5) for number, thing in things.items() if thing.settle(wanted)]
    kinds: dict[str, list[int]] = {}
    for number, thing in things.items():
        kinds.setdefault(thing.state, []).append(number)
    return len(settled) + sum(len(numbers) for numbers in kinds.values())


def yardstick_us(rounds: int = ROUNDS, clock_ns: Callable[[], int] = time.thread_time_ns) -> float:
    """Microseconds of CPU of one round, the least of `rounds`; about ten milliseconds in all."""
    least = float("inf")
    for _ in range(rounds):
        begun = clock_ns()
        _round()
        least = min(least, (clock_ns() - begun) / 1000)
    return least
