"""Jitter: callers that failed in one moment do not ask again in one.

Several processes lose the same store, source or broker together, and their pauses double alike: without chance in them
the callers would come back together, each time ("Exponential Backoff And Jitter", AWS Architecture Blog, 2015).
"""

from __future__ import annotations

from collections.abc import Callable


def jittered(pause: float, random: Callable[[], float] | None) -> float:
    """A pause of half of its length to one and a half, on average as long. `random` returns a number in [0, 1); without
    it there is no chance (tests)."""
    return pause if random is None else pause * (0.5 + random())


def jittered_shorter(pause: float, random: Callable[[], float]) -> float:
    """A pause of half of its length to all of it: for a call that somebody waits for, and that has an end."""
    return pause * (0.5 + 0.5 * random())


def jittered_longer(pause: float, random: Callable[[], float]) -> float:
    """A pause of its length to half as long again: for one that somebody asked for, since before that it is in vain."""
    return pause * (1.0 + 0.5 * random())
