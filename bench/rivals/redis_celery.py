"""Celery on Redis: a worker of two processes.

celery --app tailrace.bench.rivals.redis_celery worker --concurrency 2    runs the tasks
python -m tailrace.bench.rivals.redis_celery                              submits them (feeding.py)

Cost of a SIGKILL: a task that was begun or fetched is delivered again an hour later, which is the default of its
`visibility_timeout`; a message that the worker took off the list and did not yet write to the unacknowledged is lost.
"""

from __future__ import annotations

from celery import Celery

from .feeding import RivalFeeder, main
from .settings import settings
from .work import noop as work
from .work import started

app = Celery("rivals", broker=settings().url)
app.conf.update(
    # Acknowledged when it has run, and put back when its process died, as its pages advise for idempotent tasks.
    task_acks_late=True,
    task_reject_on_worker_lost=True,
    # Nobody reads the results of a no-op.
    task_ignore_result=True,
    # Its page on optimizing: for many short tasks, 64 or 128.
    worker_prefetch_multiplier=128,
    # No task has a limit, so none needs to be asked for.
    worker_disable_rate_limits=True,
    broker_connection_retry_on_startup=True,
)


@app.task(name="noop")
def noop() -> None:
    """Does nothing."""
    work()


@app.task(name="start")
def start(sent: float) -> None:
    """Notes its start."""
    started(sent)


async def fill(count: int) -> None:
    """Submits one after the other, by one producer: it has no call for many."""
    with app.producer_or_acquire() as producer:
        for _ in range(count):
            noop.apply_async(producer=producer)


async def send(sent: float) -> None:
    """Submits one."""
    start.delay(sent)


async def left() -> int:
    """Number of tasks in the list, and unacknowledged."""
    with app.connection_or_acquire() as connection:
        channel = connection.default_channel
        return int(channel.client.llen("celery")) + int(channel.client.hlen(channel.unacked_key))


if __name__ == "__main__":
    main(RivalFeeder(fill, send, left))
