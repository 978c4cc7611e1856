"""Members of the fleet, as a gateway sees them: tailers of other processes, which report in the control store, and take
orders there."""

from __future__ import annotations

import asyncio
import uuid

from ..model.audit import Audit
from ..model.errors import InvalidRequest, Unavailable
from ..model.member import (
    Answered,
    AuditAsked,
    FleetMember,
    MemberOrder,
    SeekAsked,
    answered_by,
    asked_text,
    tailers_of,
)
from ..model.overview import TailerOverview
from ..model.seek import Move, Seek
from ..stores.control.control import MemberStore

#: Seconds that an answer may take, and seconds between two looks for it.
PATIENCE, LOOK = 110.0, 0.2


class OtherMembers:
    """All members but this process (`own`; empty: this process is no member)."""

    def __init__(self, store: MemberStore, own: str = "") -> None:
        self._store = store
        self._own = own

    async def _others(self) -> list[FleetMember]:
        return [each for each in await self._store.members() if each.id != self._own]

    async def tailers(self) -> list[TailerOverview]:
        """The tailers of all other members, by name and process."""
        found = [tailer for member in await self._others() for tailer in tailers_of(member)]
        return sorted(found, key=lambda each: (each.name, each.process))

    async def places(self, tailer: str) -> list[str]:
        """The processes in which a tailer runs."""
        return [each.process for each in await self.tailers() if each.name == tailer]

    async def seek(self, seek: Seek) -> list[Move]:
        """Has a checkpoint moved by the process in which its tailer runs."""
        return (await self._asked(seek.tailer, SeekAsked(seek))).moves

    async def audits(self, tailer: str, partition: str | None, span: tuple[int, int] | None) -> list[Audit]:
        """Has a tailer audited where it runs; each process answers for the partitions that it has read."""
        return (await self._asked(tailer, AuditAsked(tailer, partition, span))).audits

    async def _asked(self, tailer: str, asked: SeekAsked | AuditAsked) -> Answered:
        """Asks the first member that has the tailer. Raises its refusal, and Unavailable where it does not answer."""
        having = [each for each in await self._others() if any(one.name == tailer for one in tailers_of(each))]
        if not having:
            raise InvalidRequest(f"no tailer {tailer!r:.200} runs anywhere: `tailrace tailer list` shows running ones")
        member, order = having[0], MemberOrder(uuid.uuid4().hex, having[0].id, asked_text(asked))
        await self._store.put_order(order)
        try:
            async with asyncio.timeout(PATIENCE):
                return await self._answer(order.id, member)
        except TimeoutError:
            raise Unavailable(f"{member.place} did not answer within {PATIENCE:g} seconds: ask again") from None

    async def _answer(self, id: str, member: FleetMember) -> Answered:
        while True:
            kept = await self._store.order(id)
            answer = None if kept is None else answered_by(kept)
            if answer is not None:
                if answer.refused:
                    raise (Unavailable if answer.again else InvalidRequest)(answer.refused)
                return answer
            if all(each.id != member.id for each in await self._others()):
                raise Unavailable(f"{member.place} ended before it answered: ask again")
            await asyncio.sleep(LOOK)
