"""The relay of events of jobs: carries them from their outbox (a transactional outbox) into streams of the embedded
log, at least once.

An event is removed from the outbox once its stream has it. After a crash in between it is appended again, with the same
id.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict

from ...model.errors import TailraceError
from ..log.log import Log, Record
from .jobs import JobOutbox
from .rules.events import stream_of

#: Seconds between two looks at an own file, and at a server; most events of one step; seconds after which another relay
#: may take the events of a step.
LOOK, LOOK_AT_SERVER, SOME, HELD = 0.2, 1.0, 1000, 30.0
#: Seconds before a store that was away is asked again.
PAUSE = 1.0

_LOG = logging.getLogger("tailrace.stores")


class JobEventRelay:
    """The carrier of events from one outbox. Several may run beside each other."""

    def __init__(self, outbox: JobOutbox, log: Log, look: float = LOOK) -> None:
        self._outbox = outbox
        self._log = log
        self._look = look

    async def run(self) -> None:
        """Carries events until it is cancelled; waits for a store that is away or full."""
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
        """Carries some of the oldest events; returns how many."""
        rows = await self._outbox.take_events(SOME, HELD)
        by_stream: defaultdict[str, list[Record]] = defaultdict(list)
        for row in rows:
            by_stream[stream_of(row.bit)].append(Record(row.payload, row.tree))
        for stream, records in by_stream.items():
            await self._log.append(stream, 0, records)
        if rows:
            await self._outbox.forget_events([row.number for row in rows])
        return len(rows)
