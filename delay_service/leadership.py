"""Leadership of a ladder: all copies of the delay service take parks, and one at a time (the leader) moves items.

A row of the ownership store says which one. A copy that starts takes the row at once from any holder, since a move may
be repeated: so a service that died is followed without waiting. A leader that was deposed so stands by. It takes the
row again when its owner released it, or when it stood unchanged for its lease, because its owner is dead or cut off.
"""

from __future__ import annotations

import asyncio
import contextlib

from ..foundation.clock import Clock
from ..model.errors import StaleFence, TailraceError
from ..stores.ownership.ownership import Ownership

#: The ladder's name among owned sources and in the checkpoints; not a name that a tailer can have.
SOURCE = "@delay"
HOLDER = "mover"
#: Seconds: that a copy standing by waits for an unchanged row; between renewals; between its looks.
LEASE = 10.0
RENEW_EVERY = 3.0
LOOK_EVERY = 1.0


class MoverLeadership:
    """The row of the leader, as one mover sees it. `epoch` is that of its last take; 0: it never led."""

    def __init__(self, ownership: Ownership, clock: Clock) -> None:
        self.epoch = 0
        self._ownership = ownership
        self._clock = clock
        self._over = asyncio.Event()

    async def take(self) -> int:
        """Takes the row at once, even from another holder, and returns the epoch."""
        while True:
            row = await self._ownership.read(SOURCE, "")
            taken = await self._ownership.take(SOURCE, "", HOLDER, LEASE, row.version if row else 0)
            if taken is not None:
                self.epoch = taken.epoch
                self._over.clear()
                return taken.epoch

    def over(self) -> None:
        """Notes that a write was refused, since another mover leads: `keep` returns."""
        self._over.set()

    async def keep(self) -> None:
        """Renews the row; returns when another mover has it."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(RENEW_EVERY):
                    await self._over.wait()
                    return
            try:
                await self._ownership.renew(SOURCE, "", self.epoch, ())
            except StaleFence:
                return
            except TailraceError:  # the store is away: a copy that stands by cannot reach it either, or takes over
                continue

    async def free(self) -> None:
        """Returns when no mover has the row, or its holder did not renew it for its lease."""
        version, since = -1, 0.0
        while True:
            with contextlib.suppress(TailraceError):
                row = await self._ownership.read(SOURCE, "")
                if row is None or not row.holder:
                    return
                now = self._clock.monotonic()
                if row.version != version:
                    version, since = row.version, now
                elif now - since > row.lease:
                    return
            await asyncio.sleep(LOOK_EVERY)

    async def release(self) -> None:
        """Releases the row, so that the next mover begins at once. Harmless when it is not ours."""
        if self.epoch:
            with contextlib.suppress(TailraceError):
                await self._ownership.release(SOURCE, "", self.epoch)
