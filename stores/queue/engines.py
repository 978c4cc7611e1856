"""Queue engines besides the embedded one: the values of `queue` in stores.yaml."""

from __future__ import annotations

from typing import Protocol

from ..engines import Engines, StoreEngine
from .queue import Queue


class OpenQueue(Queue, Protocol):
    """A queue as its owner has it. `quiet_until`: no lease is granted before this time of the monotonic clock."""

    quiet_until: float

    async def open(self) -> None:
        """Checks the server or file under the queue. Raises ConfigError for one that a queue cannot rest on; a server
        that cannot be reached now is tried again at each use. Harmless when open."""

    async def sweep(self) -> int:
        """Ends leases that are over, and removes some of the ended items that are past their retention; returns how
        many it removed. Called now and then, and again at once while it removes some."""

    async def close(self) -> None:
        """Closes connections and files that it opened. Harmless when closed."""


#: An engine makes a queue of its options, StoresConfig, a Clock, `wait` (the lease of a source, seconds), `fleet` (the
#: fleet of this process; empty: none) and `times`, which takes up the trusted time of the server's clock. A queue that
#: belongs to another fleet is refused.
QueueEngine = StoreEngine[OpenQueue]

ENGINES = Engines[OpenQueue](
    {"postgres": "tailrace.stores.queue.postgres.queue:ENGINE", "redis": "tailrace.stores.queue.redis.queue:ENGINE"}
)
