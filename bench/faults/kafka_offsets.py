"""Committed offsets of a group, as a client of our own hears of them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from kafka.admin import KafkaAdminClient

from .looks import Ask
from .passed import JournaledProgress


@asynccontextmanager
async def group_offsets(bootstrap: str, group: str, place: str) -> AsyncIterator[Ask[JournaledProgress]]:
    """Asks the brokers. `place` has a `{partition}`."""
    admin = await asyncio.to_thread(KafkaAdminClient, bootstrap_servers=bootstrap, request_timeout_ms=5000)

    async def ask() -> Mapping[str, JournaledProgress]:
        answer = await asyncio.to_thread(admin.list_group_offsets, {group: None})
        offsets = {each.partition: int(known.offset) for each, known in answer.get(group, {}).items()}
        return {
            place.format(partition=each): JournaledProgress(offset) for each, offset in offsets.items() if offset >= 0
        }

    try:
        yield ask
    finally:
        # kafka-python waits for its own thread without a bound, and this is the run's event loop.
        threading.Thread(target=admin.close, name="close-admin", daemon=True).start()
