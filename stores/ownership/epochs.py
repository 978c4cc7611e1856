"""Epochs of owners: one rule for every engine, so that a stream may move from one to another.

An epoch is at least the seconds since 2020, so that a store that was put back to an older copy gives none a second
time. An epoch above a counter of 32 bits is a fence of 63 bits (model/fence.py), so an epoch has 31. The clock gives
epochs up to EPOCHS_BY_CLOCK, which it reaches in 2087; however far it was ahead for a moment, sixteen million takes are
left then, by count.
"""

from ...model.fence import FENCES_FROM

#: 2020-01-01, in seconds since 1970.
EPOCHS_FROM = FENCES_FROM
#: The highest epoch that a clock gives by itself.
EPOCHS_BY_CLOCK = (1 << 31) - (1 << 24)


def next_epoch(former: int, wall: float) -> int:
    """The epoch of the next owner. `former` is the highest known one, 0: none; `wall` is the clock in seconds."""
    return max(former + 1, min(int(wall) - EPOCHS_FROM, EPOCHS_BY_CLOCK))
