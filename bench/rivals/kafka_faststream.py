"""FastStream: a handler for each message, in its default way, in which offsets are committed every five seconds, even
if a message failed.

    python -m tailrace.bench.rivals.kafka_faststream    one process; two of them share the partitions
"""

from __future__ import annotations

import asyncio

from faststream import FastStream
from faststream.confluent import KafkaBroker

from .settings import settings
from .work import noop

HERE = settings()
broker = KafkaBroker(HERE.bootstrap)
app = FastStream(broker)


@broker.subscriber(HERE.topic, group_id=HERE.group, auto_offset_reset="earliest")
async def handle(body: dict[str, str]) -> None:
    """Handles one message."""
    noop(**body)


if __name__ == "__main__":
    asyncio.run(app.run())
