"""The engines that the queue may have besides the embedded one: what `queue` in stores.yaml may say."""

from __future__ import annotations

from typing import Protocol

from ..engines import Engines, StoreEngine
from .queue import Queue


class OpenQueue(Queue, Protocol):
    """A queue as its owner has it. `quiet_until`: until then, by the monotonic clock, nothing is leased."""

    quiet_until: float

    async def open(self) -> None:
        """Looks at what it rests on. Raises ConfigError for what cannot be trusted with a queue; a server that cannot
        be reached now is tried again at each use. Harmless when open."""

    async def sweep(self) -> int:
        """Ends leases that are over, and forgets some of what is past its retention; how many items. Called now and
        then, and again while it forgets some."""

    async def close(self) -> None:
        """Closes what it has open. Harmless when closed."""


#: Made of its options, StoresConfig, a Clock, `wait`: the lease of a source, seconds, and `fleet`: that of this process
#: (empty where it has none), beside which a queue of another one is refused.
QueueEngine = StoreEngine[OpenQueue]

ENGINES = Engines[OpenQueue](
    {"postgres": "tailrace.stores.queue.postgres.queue:ENGINE", "redis": "tailrace.stores.queue.redis.queue:ENGINE"}
)
