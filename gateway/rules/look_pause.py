"""The pause between two looks at all trees that callers wait for."""

from __future__ import annotations

#: Seconds between two looks at a few trees, and most trees that are looked at in a second: some percent of a processor.
LOOK, TREES_PER_SECOND = 0.05, 5000


def look_pause(trees: int) -> float:
    """Seconds until the next look: with more trees it grows, so that looks never take more than their share."""
    return max(LOOK, trees / TREES_PER_SECOND)
