"""Celery on Redis, fed by a loop on kafka-python that sends a task for each record and commits after each batch.

celery --app tailrace.bench.rivals.kafka_celery worker --concurrency 2    runs the tasks
python -m tailrace.bench.rivals.kafka_celery                              feeds them
"""

from __future__ import annotations

from celery import Celery

from .settings import settings
from .work import noop as work

HERE = settings()
app = Celery("rivals", broker=HERE.url)
# Settings that its page on optimizing gives for many short tasks whose results nobody reads.
app.conf.update(task_ignore_result=True, worker_prefetch_multiplier=128, broker_connection_retry_on_startup=True)


@app.task(name="noop")
def noop() -> None:
    """Runs the work of one record."""
    work()


def main() -> None:
    """Feeds records until it is ended."""
    from .kafka_loop import loop  # a worker needs no Kafka

    loop(noop.delay)


if __name__ == "__main__":
    main()
