"""A loop by hand on kafka-python: poll, run each record, commit after each batch.

python -m tailrace.bench.rivals.kafka_loop    one process; two of them share the partitions
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # its way to read its own schemas
    from kafka import KafkaConsumer

from .settings import settings
from .work import noop


def loop(run: Callable[..., object]) -> None:
    """Calls `run` with the arguments in each record, until it is ended."""
    here = settings()
    consumer = KafkaConsumer(
        here.topic,
        bootstrap_servers=here.bootstrap,
        group_id=here.group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
    while True:
        batches = consumer.poll(timeout_ms=500)
        for records in batches.values():
            for record in records:
                run(**json.loads(record.value))
        if batches:
            consumer.commit()


if __name__ == "__main__":
    loop(noop)
