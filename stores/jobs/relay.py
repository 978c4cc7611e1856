"""The relay of events of jobs: from the outbox beside them into streams of the embedded log, at least once.

An event is forgotten once its stream has it, so a crash between tells it again, under the same id (the transactional
outbox).
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict

from ...model.errors import TailraceError
from ..log.log import Log, Record
from .jobs import JobOutbox
from .rules.events import stream_of

#: Seconds between two looks at a file of one's own, and at a server; events of one step; seconds in which a step is
#: over, or another relay takes its events.
LOOK, LOOK_AT_SERVER, SOME, HELD = 0.2, 1.0, 1000, 30.0
#: Seconds before a store that was away is asked again.
PAUSE = 1.0

_LOG = logging.getLogger("tailrace.stores")


class JobEventRelay:
    """Carries events while it runs. Several may run beside one outbox."""

    def __init__(self, outbox: JobOutbox, log: Log, look: float = LOOK) -> None:
        self._outbox = outbox
        self._log = log
        self._look = look

    async def run(self) -> None:
        """A store that is away, or full, is waited for."""
        while True:
            try:
                carried = await self.step()
            except TailraceError as error:
                _LOG.info("events of jobs wait: %s", error)
                await asyncio.sleep(PAUSE)
                continue
            if carried < SOME:
                await asyncio.sleep(self._look)

    async def step(self) -> int:
        """Carries some of the oldest; how many."""
        rows = await self._outbox.take_events(SOME, HELD)
        by_stream: defaultdict[str, list[Record]] = defaultdict(list)
        for row in rows:
            by_stream[stream_of(row.bit)].append(Record(row.payload, row.tree))
        for stream, records in by_stream.items():
            await self._log.append(stream, 0, records)
        if rows:
            await self._outbox.forget_events([row.number for row in rows])
        return len(rows)
