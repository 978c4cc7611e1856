"""What a group's committed offsets say while everything breaks, asked from outside by a client of our own."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from kafka.admin import KafkaAdminClient

from .journal import FATAL, RETRY, SUCCESS, Line
from .verdict import Finding

#: Seconds between two questions.
EVERY = 0.25

#: After these an item is done, or (a retry) waits in the delay service: its position may be passed.
_MAY_PASS = frozenset({SUCCESS, FATAL, RETRY})


class Committed(NamedTuple):
    """The group's offset of one partition, as it was known at `at`, on the machine's monotonic clock."""

    at: float
    partition: int
    offset: int


class Commits:
    """Asks for as long as it runs. A Part. `seen` are all answers that said something new."""

    def __init__(self, bootstrap: str, group: str) -> None:
        self.seen: list[Committed] = []
        self.known: dict[int, int] = {}
        self.answers = 0
        self._bootstrap = bootstrap
        self._group = group
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._task = asyncio.create_task(self._ask_on(), name="commits")

    async def drain(self, timeout: float) -> None:
        """Nothing to wait for."""

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _ask_on(self) -> None:
        while True:
            with contextlib.suppress(Exception):  # the brokers are away: that is the run's business
                admin = await asyncio.to_thread(
                    KafkaAdminClient, bootstrap_servers=self._bootstrap, request_timeout_ms=5000
                )
                try:
                    while True:
                        self._take(await asyncio.to_thread(admin.list_group_offsets, {self._group: None}))
                        await asyncio.sleep(EVERY)
                finally:
                    # kafka-python waits for its own thread without a bound, and this is the run's event loop.
                    threading.Thread(target=admin.close, name="close-admin", daemon=True).start()
            await asyncio.sleep(EVERY)

    def _take(self, answer: Mapping[str, Mapping[object, object]]) -> None:
        now = time.monotonic()
        self.answers += 1
        for place, committed in answer.get(self._group, {}).items():
            partition, offset = int(place.partition), int(committed.offset)  # type: ignore[attr-defined]
            if offset >= 0 and self.known.get(partition) != offset:
                self.known[partition] = offset
                self.seen.append(Committed(now, partition, offset))


def passed(lines: Iterable[Line], seen: Sequence[Committed], topic: str, tailer: str) -> list[Finding]:
    """The offsets that had passed an item which, by the journal, was neither done nor had failed by then: each item
    that was passed so, once. Also offsets that went back."""
    over: dict[str, float] = {}
    for line in lines:
        if line.word in _MAY_PASS:
            over[line.id] = min(line.at, over.get(line.id, line.at))
    found: list[Finding] = []
    known: dict[int, int] = {}
    for answer in seen:
        before = known.get(answer.partition, 0)
        if answer.offset < before:
            detail = f"the group's offset of partition {answer.partition} went back from {before} to {answer.offset}"
            found.append(Finding("backwards", "", answer.at, detail))
        for position in range(before, answer.offset):
            id = f"{tailer}/{topic}-{answer.partition}/{position}"
            if over.get(id, float("inf")) > answer.at:
                found.append(Finding("passed", id, answer.at, f"the group was told {answer.offset} before it was over"))
        known[answer.partition] = max(before, answer.offset)
    return found
