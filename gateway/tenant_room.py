"""The room of the queue that tenants share: a tenant that has taken its part is refused before the queue is full for
everybody. What the queue holds is asked for while submissions come, about once a second."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence

from ..foundation.clock import Clock
from ..foundation.duties import Duties
from ..model.errors import Overloaded, TailraceError
from ..model.shared_room import room_left
from ..stores.queue.counts import Held, QueueCounts
from ..stores.queue.intake import NewItem

#: Seconds between two looks at least, and how many times as long as a look took.
LOOK, RATIO = 1.0, 20.0
#: Seconds after which a refused tenant is told to try again.
AGAIN = 5.0
NOTHING = Held(0, 0, {})


class TenantRoom:
    """The room that each tenant has left, as of the last look, with what was accepted here since."""

    def __init__(self, queue: QueueCounts, clock: Clock, duties: Duties) -> None:
        self._queue = queue
        self._clock = clock
        self._duties = duties
        self._held = NOTHING
        self._since: Counter[str] = Counter()  # accepted since the last look, by tenant, while room is scarce
        self._wanted = asyncio.Event()

    def start(self) -> None:
        """Begins to look, while submissions come."""
        self._duties.begin(self._look(), "gateway: the room of tenants")

    def check(self, items: Sequence[NewItem]) -> None:
        """Raises Overloaded for items of a tenant that has no room left for them."""
        self._wanted.set()
        if self._held.tenants:
            for tenant, count in Counter(item.kind.tenant for item in items).items():
                self.take(tenant, count)

    def take(self, tenant: str, count: int) -> None:
        """Notes that so many items of a tenant are stored now. Raises Overloaded if it has no room left for them."""
        self._wanted.set()
        if not self._held.tenants:
            return
        most, live, tenants = self._held
        held = tenants.get(tenant, 0) + self._since[tenant]
        if count > room_left(held, live + self._since.total(), most):
            whose = f"the tenant {tenant!r} has" if tenant else "workloads without a tenant are"
            raise Overloaded(
                f"{whose} about {held} of the {most} workloads that the queue takes (`max_waiting`), and what is left "
                "is for others too: try again later",
                AGAIN,
            )
        self._since[tenant] += count

    async def _look(self) -> None:
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            began = self._clock.monotonic()
            try:
                self._held = await self._queue.held()
                self._since.clear()
            except TailraceError:  # the store is away: it takes nothing itself
                self._held = NOTHING
            await asyncio.sleep(max(LOOK, RATIO * (self._clock.monotonic() - began)))
