"""Figures of a scenario: while it runs, and in the end."""

from __future__ import annotations

from collections.abc import Callable

#: Tells the present step, and the share of it that is done.
Progress = Callable[[str, float], None]
#: Figures by name; the name ends with the unit.
Figures = dict[str, float]
