"""Rooms that tenants share: THE rule of how much of one a tenant may take (dynamic thresholds, as of buffers in
switches, Choudhury and Hahne 1998). A tenant takes at most as much as it leaves free: alone half, two of them a third
each, so that some is free for whoever comes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from .errors import Overloaded


def room_left(held: int, used: int, most: int) -> int:
    """The part that a tenant may still take of a room for `most`: `used` of it is taken, `held` of that by itself."""
    return max(0, (most - used - held + 1) // 2)


class SharedRoom(NamedTuple):
    """The name of a room, for refusals: what is in it, with its setting, and what to do where it is full for a
    tenant, who is told to come again in `after` seconds."""

    what: str
    advice: str
    after: float

    def check(self, held: Mapping[str, int], more: Mapping[str, int], used: int, most: int) -> None:
        """Raises Overloaded where a tenant has no room left for what it takes `more`, of a room for `most`: `used` of
        it is taken, and `held` is each tenant's part of that. A batch of several tenants is taken whole, or not at
        all."""
        for tenant, count in more.items():
            own = held.get(tenant, 0)
            if count > room_left(own, used, most):
                whose = f"the tenant {tenant!r} has" if tenant else "those without a tenant have"
                raise Overloaded(
                    f"{whose} about {own} of the {most} {self.what}, and what is left is for others too: {self.advice}",
                    self.after,
                    of_tenant=True,
                )
            used += count
