"""Dramatiq on Redis: two processes of eight threads.

dramatiq tailrace.bench.rivals.redis_dramatiq --processes 2    runs the actors
python -m tailrace.bench.rivals.redis_dramatiq                 submits them (feeding.py)

Cost of a SIGKILL: nothing is lost. Messages that the process had fetched are put back by another one's maintenance,
which one command in a thousand does, when its heartbeat is a minute old.
"""

from __future__ import annotations

import dramatiq
from dramatiq.brokers.redis import RedisBroker

from .feeding import RivalFeeder, main
from .settings import settings
from .work import noop as work
from .work import started

broker = RedisBroker(url=settings().url)
dramatiq.set_broker(broker)


@dramatiq.actor
def noop() -> None:
    """Does nothing."""
    work()


@dramatiq.actor
def start(sent: float) -> None:
    """Notes its start."""
    started(sent)


async def fill(count: int) -> None:
    """Submits one after the other: it has no call for many."""
    for _ in range(count):
        noop.send()


async def send(sent: float) -> None:
    """Submits one."""
    start.send(sent)


async def left() -> int:
    """Number of messages that are not acknowledged, with those that somebody fetched again, as its own `join`
    counts."""
    return int(broker.do_qsize("default"))


if __name__ == "__main__":
    main(RivalFeeder(fill, send, left))
