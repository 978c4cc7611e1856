"""The turn to move a ladder: copies of the delay service all take parks, and one of them at a time moves (a leader).

A row of the ownership store says which one. Who starts takes it at once, whoever has it, since a move may be repeated:
so a service that died is followed without waiting. Who was deposed so stands by. It takes the row again when its owner
released it, or when it stood unchanged for its lease, because its owner is dead or cut off.
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
#: Seconds for which whoever stands by waits for a row that does not change; between renewals; between its looks.
LEASE = 10.0
RENEW_EVERY = 3.0
LOOK_EVERY = 1.0


class MoverTurn:
    """The row, as one mover sees it. `epoch` is that of its last take; 0: it never had it."""

    def __init__(self, ownership: Ownership, clock: Clock) -> None:
        self.epoch = 0
        self._ownership = ownership
        self._clock = clock
        self._over = asyncio.Event()

    async def take(self) -> int:
        """Takes the row at once, whoever has it, and returns the epoch."""
        while True:
            row = await self._ownership.read(SOURCE, "")
            taken = await self._ownership.take(SOURCE, "", HOLDER, LEASE, row.version if row else 0)
            if taken is not None:
                self.epoch = taken.epoch
                self._over.clear()
                return taken.epoch

    def over(self) -> None:
        """A write was refused: somebody else has it."""
        self._over.set()

    async def keep(self) -> None:
        """Renews the row; returns when somebody else has it."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(RENEW_EVERY):
                    await self._over.wait()
                    return
            try:
                await self._ownership.renew(SOURCE, "", self.epoch, ())
            except StaleFence:
                return
            except TailraceError:  # the store is away: whoever stands by cannot reach it either, or takes over
                continue

    async def free(self) -> None:
        """Returns when nobody has the row, or who has it did not renew it for its lease."""
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
        """Lets the next one begin at once. Harmless when it is not ours."""
        if self.epoch:
            with contextlib.suppress(TailraceError):
                await self._ownership.release(SOURCE, "", self.epoch)
