"""Figures of a scenario: while it runs, and in the end."""

from __future__ import annotations

from collections.abc import Callable

#: What is going on, and the share of it that is done.
Progress = Callable[[str, float], None]
#: By name; the unit is the name's.
Figures = dict[str, float]
