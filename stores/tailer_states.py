"""The state of tailers that rests with us, whatever they read: checkpoints, the notes beside them, and rows of owners;
and its end, when somebody says that a tailer does not come back.

A tailer that is forgotten is owned for that moment, like one whose checkpoint is moved: its rows are taken once nobody
can have its leases, so that no former owner writes any more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from ..model.did_you_mean import meant
from ..model.errors import InvalidRequest
from ..model.lease import LeaseSizes
from .checkpoints.checkpoints import Checkpoints
from .checkpoints.lives import ENTRIES, NOTES
from .log.readers import LogReaders
from .ownership.ownership import OwnedRow, Ownership

#: The owner of the rows of a tailer that is being forgotten.
HOLDER = "tailrace tailer forget"
#: Rows of one look.
ROWS = 1000
#: The first character of names that are the platform's own; and the tailer of what is due, which is, too.
OWN = "@"
DUE = "due"


class TailerStates:
    """The state of all tailers of a platform. `sleep` waits for seconds."""

    def __init__(
        self,
        checkpoints: Checkpoints,
        ownership: Ownership,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._checkpoints = checkpoints
        self._ownership = ownership
        self._readers = LogReaders(checkpoints)
        self._sleep = sleep

    async def forget(self, tailer: str) -> str:
        """Forgets the checkpoints and notes of a tailer, and returns the stream of the log that it read; empty: it read
        something else. Waits for the lease of an owner that may have died. Raises InvalidRequest, with nothing changed,
        for a tailer of which nothing rests here, and for one that runs."""
        rows = await self._rows(tailer)
        parts = ["", *(row.partition for row in rows if row.partition)]
        kept = [*(f"{tailer}/{part}" if part else tailer for part in parts), NOTES + tailer, ENTRIES + tailer]
        known = await self._readers.known()
        if tailer == DUE or tailer.startswith(OWN):
            raise InvalidRequest(f"{tailer!r} is the platform's own, and is not forgotten")
        if tailer not in known and not any([await self._checkpoints.load(each) for each in kept]):
            raise InvalidRequest(f"no tailer {tailer!r} is known: {await self._others(tailer)}")
        if held := [row.owner for row in rows if row.owner.holder]:
            await self._sleep(LeaseSizes().drift * max(owner.lease for owner in held))
            if await self._rows(tailer) != rows:
                raise _runs(tailer, held[0].holder)
        for row in rows:
            taken = await self._ownership.take(tailer, row.partition, HOLDER, row.owner.lease or 1.0, row.owner.version)
            if taken is None:
                raise _runs(tailer, "a process that took it just now")
            await self._checkpoints.open(f"{tailer}/{row.partition}" if row.partition else tailer, taken.epoch)
            await self._ownership.release(tailer, row.partition, taken.epoch)
        for each in kept:
            await self._checkpoints.forget(each)
        return await self._readers.forget(tailer)

    async def _rows(self, tailer: str) -> list[OwnedRow]:
        """The rows of a tailer: one of all that it reads, or one of each partition."""
        whole = await self._ownership.read(tailer, "")
        found = [] if whole is None else [OwnedRow(tailer, "", whole)]
        after = tailer, ""
        while page := [row for row in await self._ownership.list(ROWS, after) if row.source == tailer]:
            found += page
            after = tailer, page[-1].partition
        return found

    async def _others(self, tailer: str) -> str:
        owned = {row.source for row in await self._ownership.list(ROWS) if not row.source.startswith(OWN)}
        names = (owned | (await self._readers.known()).keys()) - {DUE, tailer}
        return meant(tailer, names) if names else "nothing of any rests here"


def _runs(tailer: str, where: str) -> InvalidRequest:
    return InvalidRequest(
        f"the tailer {tailer!r} runs: {where} has its lease. Stop that process, or take the tailer's file away there, "
        "and forget it then"
    )
