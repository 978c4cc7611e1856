"""Numbers by which the limit of a downstream adapts to what it takes, as an operator may set them."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any

#: The highest number of starts a second, and the longest time in seconds, that may be given.
HIGHEST_RATE, LONGEST = 1e9, 300.0


@dataclass(frozen=True, slots=True)
class Adaptive:
    """The numbers of one adaptive limit.

    on            whether there is one: it comes into being when its downstream throttles for the first time
    floor         starts a second that it never goes below
    ceiling       starts a second that it never goes beyond; 0: none
    increase      the part of it by which it grows in a second, while at least 80 % of it is used
    decrease      what it is multiplied by, at most, when its downstream throttles
    slow_start    seconds in which its share rises when its downstream comes back from closed, at most
    probe_timeout seconds after which a probe that has not ended counts as failed
    retries       retries of a function that calls it, as a part of its first attempts; at least one a second may go
    """

    on: bool = True
    floor: float = 1.0
    ceiling: float = 0.0
    increase: float = 0.05
    decrease: float = 0.9
    slow_start: float = 3.0
    probe_timeout: float = 30.0
    retries: float = 0.2

    def fault(self) -> str:
        """The first number that is out of its bounds, as a sentence; empty: all are well."""
        for name, least, most in (
            ("floor", 0.01, HIGHEST_RATE),
            ("ceiling", 0.0, HIGHEST_RATE),
            ("increase", 0.001, 1.0),
            ("decrease", 0.1, 0.99),
            ("slow_start", 0.0, LONGEST),
            ("probe_timeout", 1.0, LONGEST),
            ("retries", 0.0, 1.0),
        ):
            value = getattr(self, name)
            if not (math.isfinite(value) and least <= value <= most):
                return f"adaptive.{name} is {value:g}: expected {least:g} to {most:g}"
        if self.ceiling and self.ceiling < self.floor:
            return f"adaptive.ceiling is {self.ceiling:g}, below its floor of {self.floor:g}"
        return ""


#: The numbers of a downstream that no operator set.
USUAL = Adaptive()


def adaptive_to_dict(adaptive: Adaptive) -> dict[str, Any]:
    """Plain data for JSON."""
    return {each.name: getattr(adaptive, each.name) for each in fields(adaptive)}


def adaptive_from_dict(data: dict[str, Any]) -> Adaptive:
    """The inverse of `adaptive_to_dict`; what a later version says beside it is left out."""
    known = {each.name for each in fields(Adaptive)}
    return Adaptive(**{name: value for name, value in data.items() if name in known})
