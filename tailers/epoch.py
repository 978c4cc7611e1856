"""A stream tailer's hold on its source: the epoch, how long it lasts, the fences that come from it.

The checkpoint store answers for it (step 1 has one process per data directory): what the tailer holds counts from when
it sent the last request that was answered (L4), and an epoch whose lease lapsed while something was out is not resumed
(L10).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from ..sdk.clock import Clock
from ..sdk.model.errors import TailraceError
from ..sdk.model.lease import LeaseSizes
from ..stores.checkpoints.checkpoints import Checkpoints, Mark
from .durable import T, until_available

FENCE_BITS = 32


class Epoch:
    """Invariants: `held_for` never exceeds a source lease counted from a request that was answered; fences rise.

    waiting_for  why nothing may be pushed yet; empty when it may
    failing      why the checkpoint store cannot be reached; empty when it can
    """

    def __init__(self, checkpoints: Checkpoints, source: str, sizes: LeaseSizes, clock: Clock) -> None:
        self.waiting_for = ""
        self.failing = ""
        self._checkpoints = checkpoints
        self._source = source
        self._sizes = sizes
        self._clock = clock
        self._number = 0
        self._fence = 0
        self._held_until = 0.0
        self._contacted = 0.0
        self._quiet_at = 0.0  # nothing that anybody handed out before can be running after this
        self._anything_out: Callable[[], bool] = lambda: False

    async def take(self, anything_out: Callable[[], bool]) -> dict[str, Mark]:
        """Starts a new epoch; waits for the previous owner's lease if it left something running. Returns the marks."""
        self._anything_out = anything_out
        sent = self._clock.monotonic()
        opened = await self._asked(lambda: self._checkpoints.open(self._source, self._sizes.source))
        self._number = opened.epoch
        if not opened.clean and opened.epoch > 1:
            wait = self._sizes.drift * opened.lease
            self.quiet_after(sent + wait)
            self.waiting_for = f"waiting {wait:.0f} s for the previous owner's lease"
            await asyncio.sleep(wait)
            self.waiting_for = ""
            await self.renew()
        return opened.marks

    async def commit(self, marks: Mapping[str, Mark]) -> None:
        """Moves the checkpoint; raises StaleFence when another owner took the source."""
        await self._asked(lambda: self._checkpoints.commit(self._source, self._number, marks))

    async def renew(self) -> None:
        """Asks the store for anything, unless it answered within the last half heartbeat."""
        if self._clock.monotonic() > self._contacted + self._sizes.heartbeat / 2:
            await self._asked(lambda: self._checkpoints.load(self._source))

    async def release(self) -> None:
        """Notes that nothing is running any more, if that is so."""
        if self._number and self._clock.monotonic() >= self._quiet_at and not self._anything_out():
            await self._checkpoints.release(self._source, self._number)

    def next_fence(self, above: int = 0) -> int:
        """Higher than every fence before it, whoever gave it, and than `above` (what a parked item had, L19)."""
        self._fence = max(self._fence, above, self._number << FENCE_BITS) + 1
        return self._fence

    def held_for(self) -> float:
        """Seconds that the source is still held."""
        return max(0.0, self._held_until - self._clock.monotonic())

    def quiet_after(self, time: float) -> None:
        """Something may be running until then although nothing is out."""
        self._quiet_at = max(self._quiet_at, time)

    async def _asked(self, ask: Callable[[], Awaitable[T]]) -> T:
        sent = 0.0

        async def now() -> T:
            nonlocal sent
            sent = self._clock.monotonic()
            return await ask()

        answer = await until_available(now, self._fails)
        if self._held_until and sent > self._held_until and self._anything_out():
            raise TailraceError("the checkpoint store could not be reached for a whole lease; starting a new epoch")
        self._contacted = max(self._contacted, sent)
        self._held_until = max(self._held_until, sent + self._sizes.source)
        return answer

    def _fails(self, why: str) -> None:
        self.failing = why
