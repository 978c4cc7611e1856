"""FastStream at its fastest: a handler for each batch, whose offsets are committed after it.

python -m tailrace.bench.rivals.kafka_faststream_batch    one process; two of them share the partitions
"""

from __future__ import annotations

import asyncio

from faststream import AckPolicy, FastStream
from faststream.confluent import KafkaBroker

from .settings import settings
from .work import noop

HERE = settings()
#: Messages of a batch: as many as kafka-python's poll gives.
BATCH = 500

broker = KafkaBroker(HERE.bootstrap)
app = FastStream(broker)


@broker.subscriber(
    HERE.topic,
    group_id=HERE.group,
    auto_offset_reset="earliest",
    batch=True,
    max_records=BATCH,
    ack_policy=AckPolicy.ACK,
)
async def handle(bodies: list[dict[str, str]]) -> None:
    """Handles a batch of messages."""
    for body in bodies:
        noop(**body)


if __name__ == "__main__":
    asyncio.run(app.run())
