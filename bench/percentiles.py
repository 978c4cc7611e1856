"""Percentiles and medians of a run, and nothing cleverer."""

from __future__ import annotations

from collections.abc import Sequence


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that `share` of the values do not exceed (nearest rank); 0 for none."""
    if not values:
        return 0.0
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, -(-int(share * len(ordered) * 1000) // 1000) - 1))]


def median(values: Sequence[float]) -> float:
    """The middle value (the lower one of two)."""
    return percentile(values, 0.5)
