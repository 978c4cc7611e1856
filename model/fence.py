"""Fences as users see them: one scale for all of one installation, so that those of two sources can be compared.

A stream's fence is seconds since 2020 above a counter of 32 bits: the time of the hand-out by the clock of the store
that has the rows of ownership, in units of 2^-32 s. A queue's own fences are microseconds since 1970 by its store's
clock, which is far less. What came into the queue out of a stream (a dead letter that was redriven) shows its time on
the stream's scale: it is above what its key had there, and below what its key gets there later.
"""

from __future__ import annotations

#: 2020-01-01, in seconds since 1970: the beginning of epochs and of fences.
FENCES_FROM = 1_577_836_800
#: Bits of a fence below its seconds.
FENCE_BITS = 32
#: The latest time that a fence tells, in 2087; the clock gives no later epochs, either (stores/ownership/epochs.py).
LATEST = ((1 << 31) - (1 << 24)) << FENCE_BITS


def micros_of(fence: int) -> int:
    """The time that a fence of `fence_at` belongs to: its inverse."""
    return FENCES_FROM * 1_000_000 + -(-fence * 1_000_000 >> FENCE_BITS)


def fence_at(micros: int) -> int:
    """The fence that belongs to a time, in microseconds since 1970. It rises by more than one with each of them."""
    return min(LATEST, (max(0, micros - FENCES_FROM * 1_000_000) << FENCE_BITS) // 1_000_000)
