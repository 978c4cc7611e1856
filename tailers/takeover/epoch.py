"""Ownership of a source by a stream tailer: taking its row, keeping it, and the fences from it (L10 to L12).

The lease of the row counts from when the last renewal that was answered was sent (L4). The row names every scheduler
before anything is pushed to it, and each time a session opens its version rises, so that the next owner asks the right
ones and learns when one of them was joined again. A source is owned whole (one row, of the partition ""), or by
partitions, each with a row, an epoch and a checkpoint of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import uuid
from collections.abc import Awaitable, Callable, Mapping
from functools import partial

from ...foundation.clock import Clock
from ...model.backoff import STORE
from ...model.errors import StaleFence, TailraceError
from ...model.fence import FENCE_BITS, fence_at
from ...model.lease import LeaseSizes
from ...stores.checkpoints.checkpoints import Checkpoints, Mark
from ...stores.ownership.ownership import Owner, Ownership
from ..departures.durable import T, until_available
from ..rules.fleet_placement import PATIENCE
from ..rules.flight_numbers import OWN
from ..rules.takeover import SeenRow, free_at, lapsed, observe

#: Microseconds that the fences of an owner may run ahead of the last version of its row that it knows. The next owner
#: begins above that, also where the store's clock was set back meanwhile.
FENCES_AHEAD = 6_000_000
#: Looks at a row that somebody else has, in each heartbeat.
LOOKS = 5

WHOLE = ""


class Epoch:
    """The hold of one tailer on one row.

    Invariants: `held_for` never exceeds a source lease counted from a renewal that was answered; fences rise; a
    scheduler that `may_push_to` says yes to is in the row.

    number       of the epoch; 0 before it is taken
    version      of the row as this owner wrote it last
    row          the partition that is owned; WHOLE: all of them
    listed       called when the row was renewed because a session opened; the succession sets it
    adopted      the items that the former owner had running are this one's
    left_behind  the former owner may have left something running, so the items that it handed out are suspect
    waiting_for  the reason why nothing may be pushed yet; empty when it may
    standing_by  another process has the row and keeps it, or is to have it: it is waited for as long as that is so
    failing      the reason why the store cannot be reached; empty when it can
    """

    def __init__(
        self,
        ownership: Ownership,
        checkpoints: Checkpoints,
        source: str,
        sizes: LeaseSizes,
        clock: Clock,
        refused: Callable[[], None],
        row: str = WHOLE,
        left_to: Callable[[], str] = lambda: "",
    ) -> None:
        self.row = row
        self.standing_by = False
        self._left_to = left_to
        self.number = 0
        self.version = 0
        self.listed: Callable[[], None] = lambda: None
        self.adopted = False
        self.left_behind = False
        self.waiting_for = ""
        self.failing = ""
        self._ownership = ownership
        self._checkpoints = checkpoints
        self._source = source
        self._marked = source if row == WHOLE else f"{source}/{row}"  # whose checkpoint it is
        self._sizes = sizes
        self._clock = clock
        self._refused = refused
        self._pauses = STORE.within(sizes.heartbeat)
        self._wake = asyncio.Event()
        self._holder = f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:12]}"
        self._fence = 0  # no fence of this owner, or of one before it, is above it
        self._told_at = 0.0  # when the row's version, which is the store's time, was heard of
        self._held_until = 0.0
        self._schedulers: dict[str, float] = {}  # until when items of sessions there that are gone may run
        self._in_use: set[tuple[str, int]] = set()  # schedulers with which there is a session, and which one
        self._listed: tuple[str, ...] = ()
        self._quiet_at = 0.0  # nothing that anybody handed out before can be running after this

    async def take(self, adopt: Callable[[Owner], Awaitable[bool]] | None = None) -> dict[str, Mark]:
        """Takes the source under a new epoch: after its owner's lease, when it is free, or when `adopt` says that
        everything that runs under the row as it was read is adopted. Returns the marks."""
        seen: SeenRow | None = None
        asked, first = 0.0, -1
        while True:
            row = await self._asked(lambda: self._ownership.read(self._source, self.row))
            now = self._clock.monotonic()
            if row is not None and row.holder == self._holder:
                break  # taken by a request whose answer was lost; the lease counts from the first one
            seen = observe(seen, *((row.version, row.holder, row.lease) if row is not None else (0, "", 0.0)), now)
            wait = free_at(seen, self._sizes.drift) - now
            first = seen.version if first < 0 else first
            better = self._left_to()
            if wait <= -PATIENCE * self._sizes.source or seen.holder.startswith(f"{better}:"):
                better = ""  # it does not come, or has it and may be dead
            self.standing_by = bool(better or (seen.holder and seen.version != first))
            if better:
                self.adopted = False
                self.waiting_for = f"left to {better}, the fleet member that is to run this tailer"
                await self._pause(self._sizes.heartbeat / LOOKS)
                continue
            if wait > 0:
                self.waiting_for = _why(wait, seen, self.standing_by)
                self.adopted = adopt is not None and row is not None and await adopt(row)
                if not self.adopted:
                    await self._pause(min(wait, self._sizes.heartbeat / LOOKS))
                    continue
            else:
                self.adopted = False
            self.left_behind = bool(seen.holder) and not self.adopted
            asked = self._clock.monotonic()
            row = await self._asked(partial(self._take, seen.version))
            if row is not None:
                break
        self.waiting_for, self.standing_by = "", False
        self.number, self.version = row.epoch, row.version
        self._told_at = self._clock.monotonic()
        former = fence_at(seen.version + FENCES_AHEAD) if seen is not None and seen.version else 0
        self._fence = max(self.number << FENCE_BITS, former)
        self._held_until = asked + self._sizes.source
        return await self.guarded(lambda: self._checkpoints.open(self._marked, self.number))

    async def _pause(self, seconds: float) -> None:
        """Waits; less long when a session opens, since its scheduler may adopt."""
        joined = set(self._in_use)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while joined == self._in_use:
                    self._wake.clear()
                    await self._wake.wait()
        if self._schedulers:
            self._wake.set()  # they are to be named once the row is taken

    async def _take(self, version: int) -> Owner | None:
        """Takes the row. It names the schedulers of adopted items from the start, or the next owner would not know whom
        to ask."""
        names = tuple(sorted(self._schedulers))
        return await self._ownership.take(self._source, self.row, self._holder, self._sizes.source, version, names)

    async def commit(self, marks: Mapping[str, Mark]) -> None:
        """Moves the checkpoint; raises StaleFence when another owner took the source."""
        await self.guarded(lambda: self._checkpoints.commit(self._marked, self.number, marks))

    async def begin(self, partition: str, position: int) -> dict[str, Mark]:
        """Begins a partition without a checkpoint at a position, durably, before anything of it is read."""
        marks = {partition: Mark(position)}
        await self.commit(marks)
        return marks

    async def guarded(self, write: Callable[[], Awaitable[T]]) -> T:
        """Writes under this epoch, trying until the store is reached; a write that is refused as stale is counted."""
        try:
            return await self._asked(write)
        except StaleFence:
            self._refused()
            raise

    async def renew(self) -> None:
        """Renews the row, with the schedulers that may run something. Raises StaleFence when another owner took it,
        and TailraceError when the lease was over before the renewal was sent: such an epoch is not resumed (L10)."""
        now = self._clock.monotonic()
        in_use = {name for name, _ in self._in_use}
        self._schedulers = {name: until for name, until in self._schedulers.items() if name in in_use or until > now}
        names = tuple(sorted(self._schedulers))
        sent = 0.0

        async def ask() -> Owner | None:
            nonlocal sent
            sent = self._clock.monotonic()
            if lapsed(self._held_until, sent):
                raise TailraceError(
                    f"the source {self._marked!r} was not renewed for a whole lease: a new epoch is begun"
                )
            return await self._ownership.renew(self._source, self.row, self.number, names, self.version)

        while (row := await self.guarded(ask)) is None:  # another renewal came first, whose answer was lost
            if (current := await self.guarded(lambda: self._ownership.read(self._source, self.row))) is not None:
                self.version = current.version
        self._held_until = max(self._held_until, sent + self._sizes.source)
        self.version, self._listed = row.version, row.schedulers
        self._told_at = self._clock.monotonic()

    async def run(self) -> None:
        """Renews at every heartbeat, and at once when a session opened (L12)."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._sizes.heartbeat):
                    await self._wake.wait()
            woken = self._wake.is_set()
            self._wake.clear()
            await self.renew()
            if woken:
                self.listed()

    def joined(self, scheduler: str, side: int = OWN) -> None:
        """Notes that a session with this scheduler opened, perhaps again: it is about to be listed."""
        self._schedulers.setdefault(scheduler, 0.0)
        self._in_use.add((scheduler, side))
        self._wake.set()

    def left(self, scheduler: str, until: float, side: int = OWN) -> None:
        """Notes that a session with this scheduler is gone for good; items that were granted there may run until
        then."""
        if (scheduler, side) in self._in_use:
            self._in_use.discard((scheduler, side))
            self.remains(scheduler, self._clock.monotonic() + 1e-3)
            self.remains(scheduler, until)
        self.quiet_after(until)

    def remains(self, scheduler: str, until: float) -> None:
        """Notes that items granted there, by this owner or one before it, may run until then: the row names the
        scheduler, so that the next owner asks it too, whatever sessions there are meanwhile."""
        self._schedulers[scheduler] = max(until, self._schedulers.get(scheduler, 0.0))
        self.quiet_after(until)

    def may_push_to(self, scheduler: str) -> bool:
        """Whether the row names the scheduler."""
        return scheduler in self._listed

    async def release(self, busy_for: float) -> None:
        """Leaves the row empty when nothing of this epoch can be running any more: not if items out may run for
        `busy_for` seconds more, nor before the leases of those left behind are over."""
        if self.number and not busy_for and self._clock.monotonic() >= self._quiet_at:
            await self._ownership.release(self._source, self.row, self.number)

    def next_fence(self, above: int = 0) -> int:
        """A fence higher than every one before it, those of former owners too, and than `above` (the fence of a parked
        item, L19). It tells the time of the store, so that it is above those of other partitions and sources which were
        given before: a key may have been there."""
        passed = int((self._clock.monotonic() - self._told_at) / self._sizes.drift * 1e6)
        self._fence = max(self._fence, above, fence_at(self.version + min(passed, FENCES_AHEAD))) + 1
        return self._fence

    def held_for(self) -> float:
        """Seconds that the source is still held."""
        return max(0.0, self._held_until - self._clock.monotonic())

    def quiet_after(self, time: float) -> None:
        """Notes that something may be running until then although nothing is out."""
        self._quiet_at = max(self._quiet_at, time)

    def quiet(self) -> bool:
        """Whether nothing can be running that was handed out in a session that is gone."""
        return self._clock.monotonic() >= self._quiet_at

    async def _asked(self, call: Callable[[], Awaitable[T]]) -> T:
        """Asks a store, as often as it takes, and returns its answer."""
        return await until_available(call, self._fails, self._pauses)

    def _fails(self, why: str) -> None:
        self.failing = why


def _why(wait: float, seen: SeenRow, renewed: bool) -> str:
    """The reason why a source is not taken yet, for people; `renewed`: its owner renewed the row since it was first
    read."""
    if renewed:
        process = seen.holder.rpartition(":")[0] or seen.holder
        return f"standing by for {process}, which has the source"
    return f"waiting {wait:.0f} s for the lease of the previous owner, {seen.holder}"
