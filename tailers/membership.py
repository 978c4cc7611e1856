"""Membership of a process in the fleet: the process reports its tailers to the control store, and carries out orders to
them from there, so that any gateway sees and reaches all tailers, wherever they run."""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import socket
from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from ..foundation.clock import SYSTEM_CLOCK, Clock
from ..foundation.duties import Duties
from ..model.audit import Audit
from ..model.errors import TailraceError, UserError
from ..model.member import (
    TELL_EVERY,
    TOLD_FOR,
    Answered,
    AuditAsked,
    FleetMember,
    MemberOrder,
    SeekAsked,
    asked_of,
    asked_text,
    tailers_of,
    tailers_to_text,
)
from ..model.overview import TailerOverview
from ..model.seek import Move, Seek
from ..stores.control.control import MemberStore
from .rules.fleet_placement import BetterPlace, StandingMember, better_places

#: Seconds that an order may take: it may have to wait for the lease of a former owner.
LONGEST = 120.0
#: Seconds for telling the store that this process has ended.
LAST_WORDS = 1.0

_LOG = logging.getLogger("tailrace.tailers")


class TailersHere(Protocol):
    """The tailers of this process."""

    def movable(self) -> list[str]:
        """The tailers that any process with the same file could run, if it had their source."""

    def placed(self, elsewhere: Mapping[str, BetterPlace]) -> None:
        """Hears which tailers belong to other processes, to which their sources are left."""

    def overviews(self) -> list[TailerOverview]: ...

    async def seek(self, seek: Seek) -> list[Move]: ...

    async def audits(
        self, name: str, partition: str | None = None, span: tuple[int, int] | None = None
    ) -> list[Audit]: ...


class Membership:
    """A part. `id` is drawn anew for each process; `place` (host and process id) is for people."""

    def __init__(self, store: MemberStore, tailers: TailersHere, clock: Clock = SYSTEM_CLOCK) -> None:
        self.id = secrets.token_hex(8)
        self.place = f"{socket.gethostname()}:{os.getpid()}"
        self.duties = Duties("membership")
        self._store = store
        self._tailers = tailers
        self._clock = clock
        self._others = OtherProcesses(self.id, self.place)
        self._away = False
        self._busy: dict[str, asyncio.Task[None]] = {}

    async def start(self) -> None:
        """Reports regularly from now on."""
        self.duties.begin(self._tell_on(), "telling of tailers")

    async def drain(self, timeout: float) -> None:
        """Waits until the orders that were taken up are carried out, or until `timeout`."""
        if self._busy:
            await asyncio.wait(self._busy.values(), timeout=timeout)

    async def stop(self) -> None:
        """Tells the store that this process has ended, if it answers at once; otherwise the last report runs out."""
        await self.duties.end()
        try:
            async with asyncio.timeout(LAST_WORDS):
                await self._store.forget_member(self.id)
        except (TailraceError, TimeoutError):
            pass

    async def _tell_on(self) -> None:
        while True:
            try:
                told = FleetMember(self.id, self.place, tailers_to_text(self._tailers.overviews()))
                for order in await self._store.tell_member(told, TOLD_FOR):
                    if order.id not in self._busy:
                        task = self.duties.begin(self._do(order), f"asked of the tailers: {order.id}")
                        self._busy[order.id] = task
                members = await self._store.members()
                self._tailers.placed(self._others.look(self._tailers.movable(), members, self._clock.monotonic()))
            except TailraceError as error:
                self._tailers.placed({})  # nobody knows who else there is: the leases alone decide
                if not self._away:
                    _LOG.warning("the tailers here cannot be reported to the fleet, trying again: %s", error)
                self._away = True
            else:
                self._away = False
            await asyncio.sleep(TELL_EVERY)

    async def _do(self, order: MemberOrder) -> None:
        try:
            answer = await self._answer(order)
            await self._store.answer_order(order.id, asked_text(answer))
        except TailraceError as error:
            _LOG.warning("the result of an order to the tailers here cannot be reported: %s", error)
        finally:
            del self._busy[order.id]

    async def _answer(self, order: MemberOrder) -> Answered:
        try:
            async with asyncio.timeout(LONGEST):
                match asked_of(order):
                    case SeekAsked(seek=seek):
                        return Answered(moves=await self._tailers.seek(seek))
                    case AuditAsked() as asked:
                        return Answered(audits=await self._tailers.audits(asked.tailer, asked.partition, asked.span))
        except TimeoutError:
            return Answered(refused=f"the order took {self.place} more than {LONGEST:g} seconds", again=True)
        except TailraceError as error:
            return Answered(refused=str(error), again=not isinstance(error, UserError))
        except Exception as error:
            _LOG.exception("an order to the tailers here failed")
            return Answered(refused=f"the order failed at {self.place}: {error!r}; see the log there")
        return Answered(refused=f"{self.place} has another version of tailrace, which does not know this order")


#: States in which a tailer may be where it belongs.
ABLE = ("starting", "running", "clogged")


class OtherProcesses:
    """All processes with tailers but the one with this id. Invariant: `_since` has the processes of the last look, each
    with the time at which it was first seen."""

    def __init__(self, id: str, place: str) -> None:
        self._id, self._place = id, place
        self._since: dict[str, float] = {}

    def look(self, tailers: Collection[str], members: Sequence[FleetMember], now: float) -> Mapping[str, BetterPlace]:
        """The better place of each of the `tailers`, which run here, that belongs to another process."""
        others = [each for each in members if each.id != self._id]
        self._since = {each.id: self._since.get(each.id, now) for each in others}
        standing = [
            StandingMember(
                each.id,
                each.place,
                frozenset(told.name for told in tailers_of(each) if told.state in ABLE),
                self._since[each.id],
            )
            for each in others
        ]
        return better_places(StandingMember(self._id, self._place, frozenset(tailers), now), standing, now)
