"""The movers of a delay service: one of the ladder always, since a rung not used any more is emptied too, and one of
the queue where there is a queue.
"""

from __future__ import annotations

from typing import Protocol

from ..delay_service.config import DelayConfig
from ..delay_service.mover import Mover
from ..delay_service.queue_mover import QueueMover
from ..foundation.lifecycle import Part
from ..stores.checkpoints.checkpoints import Checkpoints
from ..stores.log.log import Log
from ..stores.ownership.ownership import Ownership
from ..stores.queue.queue import Queue


class Stores(Protocol):
    """The stores of a node that the ladder's mover needs, embedded or served."""

    @property
    def delay_log(self) -> Log: ...

    @property
    def checkpoints(self) -> Checkpoints: ...

    @property
    def ownership(self) -> Ownership: ...


def movers(stores: Stores, queue: Queue | None, config: DelayConfig) -> list[Part]:
    """The movers over these stores, to be started after them."""
    log = stores.delay_log
    ladder: list[Part] = [Mover(log, stores.checkpoints, stores.ownership, config)]
    return ladder if queue is None else [*ladder, QueueMover(queue, log, config)]
