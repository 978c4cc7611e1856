"""Rooms that tenants share: THE rule of how much of one a tenant may take (dynamic thresholds, as of buffers in
switches, Choudhury and Hahne 1998). A tenant takes at most as much as it leaves free: alone half, two of them a third
each, so that some is free for whoever comes."""

from __future__ import annotations


def room_left(held: int, used: int, most: int) -> int:
    """The part that a tenant may still take of a room for `most`: `used` of it is taken, `held` of that by itself."""
    return max(0, (most - used - held + 1) // 2)
