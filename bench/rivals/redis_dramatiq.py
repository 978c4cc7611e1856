"""Dramatiq on Redis: two processes of eight threads.

dramatiq tailrace.bench.rivals.redis_dramatiq --processes 2    runs the actors
python -m tailrace.bench.rivals.redis_dramatiq                 submits them (feeding.py)

What a SIGKILL costs: nothing is lost. What the process had fetched is put back by another one's maintenance, which one
command in a thousand does, when its heartbeat is a minute old.
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
    """Says when it started."""
    started(sent)


async def fill(count: int) -> None:
    """One after the other: it has no call for many."""
    for _ in range(count):
        noop.send()


async def send(sent: float) -> None:
    """One."""
    start.send(sent)


async def left() -> int:
    """Messages that are not acknowledged, and those that somebody fetched again; what its own `join` waits for."""
    return int(broker.do_qsize("default"))


if __name__ == "__main__":
    main(RivalFeeder(fill, send, left))
