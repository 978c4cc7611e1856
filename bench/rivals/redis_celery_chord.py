"""Celery's chord on Redis, broker and result backend: so many header tasks, and a body that gets all of their results.

celery --app tailrace.bench.rivals.redis_celery_chord worker --concurrency 2    runs them
python -m tailrace.bench.rivals.redis_celery_chord fill 10000                   submits one

Settings as in redis_celery.py, but the results of header tasks are kept, which is how a chord knows that all are done.
"""

from __future__ import annotations

import os
import sys
import time

from celery import Celery, chord

from .settings import settings
from .work import gathered
from .work import part as work

app = Celery("rivals", broker=settings().url, backend=settings().url)
app.conf.update(
    task_acks_late=True,
    task_reject_on_worker_lost=True,
    worker_prefetch_multiplier=128,
    worker_disable_rate_limits=True,
    broker_connection_retry_on_startup=True,
)


@app.task(name="part")
def part(number: int) -> int:
    """Hands on its number."""
    return work(number)


@app.task(name="whole", ignore_result=True)
def whole(values: list[int]) -> None:
    """Gets the results of all parts."""
    gathered(values)


def fill(count: int) -> None:
    """Submits one chord of so many header tasks."""
    chord([part.s(number) for number in range(count)])(whole.s())


if __name__ == "__main__":
    began = time.perf_counter()
    fill(int(sys.argv[2]))
    print(time.perf_counter() - began, flush=True)
    # All is on the server; results that nobody waits for complain when they are taken down with the interpreter.
    os._exit(0)
