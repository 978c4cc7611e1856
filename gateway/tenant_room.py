"""The rooms of stores that tenants share: a tenant that has taken its part is refused before a room is full for
everybody. What a room holds is asked for while something comes, about once a second."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence

from ..foundation.clock import Clock
from ..foundation.duties import Duties
from ..model.errors import TailraceError
from ..model.shared_room import SharedRoom
from ..stores.queue.counts import Held
from ..stores.queue.intake import NewItem

#: Seconds between two looks at least, and how many times as long as a look took.
LOOK, RATIO = 1.0, 20.0
#: Seconds after which a refused tenant is told to try again.
AGAIN = 5.0
NOTHING = Held(0, 0, {})
#: The rooms: workloads that have not ended, open trees of jobs, and bytes that trees keep.
WAITING = SharedRoom("workloads that the queue takes (`max_waiting`)", "try again later", AGAIN)
OPEN_JOBS = SharedRoom(
    "jobs that may be open", "end some (`tailrace job list --state running`), or try again later", AGAIN
)
KEPT_BYTES = SharedRoom(
    "bytes that jobs keep (`job_bytes`)",
    "delete jobs that are over (`tailrace job delete ID`), or wait until the retention of some is over",
    AGAIN,
)


class TenantRoom:
    """The room that each tenant has left, as of the last look, with what was accepted here since. `ask`: what the room
    holds."""

    def __init__(self, room: SharedRoom, ask: Callable[[], Awaitable[Held]], clock: Clock, duties: Duties) -> None:
        self._room = room
        self._ask = ask
        self._clock = clock
        self._duties = duties
        self._held = NOTHING
        self._since: Counter[str] = Counter()  # accepted since the last look, by tenant, while room is scarce
        self._wanted = asyncio.Event()

    def start(self) -> None:
        """Begins to look, while something comes."""
        self._duties.begin(self._look(), "gateway: a room of tenants")

    def check(self, items: Sequence[NewItem]) -> None:
        """Raises Overloaded for items of a tenant that has no room left for them."""
        self._wanted.set()
        if self._held.tenants:
            self.take(Counter(item.kind.tenant for item in items))

    def take(self, more: Mapping[str, int]) -> None:
        """Notes that so much of tenants is stored now. Raises Overloaded if one has no room left for it: then nothing
        is noted."""
        self._wanted.set()
        most, live, tenants = self._held
        if tenants:
            held = {tenant: tenants.get(tenant, 0) + self._since[tenant] for tenant in more}
            self._room.check(held, more, live + self._since.total(), most)
            self._since.update(more)

    async def _look(self) -> None:
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            began = self._clock.monotonic()
            try:
                self._held = await self._ask()
                self._since.clear()
            except TailraceError:  # the store is away: it takes nothing itself
                self._held = NOTHING
            await asyncio.sleep(max(LOOK, RATIO * (self._clock.monotonic() - began)))
