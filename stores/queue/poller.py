"""The poller of a queue: looks for due items at the pace of `pace.py`, and counts the pollers of the queue.

Each poller tells the store about every half minute that it is there, and asks every few seconds how many did so
recently. A dead poller leaves the count within SEEN seconds, a closed one at once.
"""

from __future__ import annotations

import asyncio
import logging
import math
import random
import secrets
from collections.abc import Awaitable, Callable
from typing import NamedTuple, Protocol

from ...foundation.lifecycle import cancel
from ...model.claim import Leased
from ...model.demand import Demand
from ...model.errors import TailraceError
from .pace import EmptyLooks, PollPace

#: Seconds between looks of all pollers together, unless configured. The mean wait without a hint is half of it.
INTERVAL = 1.0
#: Seconds between two signs of life of a poller, and between two counts. After SEEN without a sign it counts as dead.
TELL, COUNT, SEEN = 30.0, 5.0, 75.0
#: Share of a process's own interval after which a look also covers changes that other processes may have made.
OFTEN = 0.8
#: Shortest time between two looks of one waiter, seconds.
LEAST = 0.001

_LOG = logging.getLogger("tailrace.stores")


class LookResult(NamedTuple):
    """A claim that a look made, and the seconds for which nothing more can be due in its demand, as far as is known."""

    leased: Leased
    pause: float


#: The result of a look; a number means that nothing was due, and something may be due in so many seconds.
Found = Leased | LookResult | float


class Pollers(Protocol):
    """The pollers of a queue, as its store knows them."""

    async def count(self, me: str, *, here: bool) -> int:
        """Returns how many pollers gave a sign of life within SEEN seconds; with `here` this call is one."""

    async def leave(self, me: str) -> None:
        """Removes this poller from the count."""


async def nothing() -> None:
    """Brings no claim: the default of `brought`."""


class Poller:
    """The wait of every lease call of one process. `pollers` is None where no other process can poll.

    interval   seconds between looks of all pollers together
    """

    def __init__(
        self, interval: float, pollers: Pollers | None, *, randomly: Callable[[], float] = random.random
    ) -> None:
        self._pace = PollPace(interval, randomly)
        self._looks = EmptyLooks()
        self._pollers = pollers
        self._random = randomly
        self._me = secrets.token_hex(8)
        self._counting: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()
        self._rested = -math.inf  # the store is left alone until then
        self.waiting = 0  # leases that wait now

    @property
    def own_interval(self) -> float:
        """Seconds between looks of this process."""
        return self._pace.own

    def may_look_at_others(self, looked: float, now: float) -> bool:
        """Whether it is time to look again at changes of other processes, if the last such look was at `looked`
        (monotonic)."""
        return abs(now - looked) >= OFTEN * self._pace.own

    async def find(
        self,
        demand: Demand,
        wait: float,
        look: Callable[[], Awaitable[Found]],
        brought: Callable[[], Awaitable[Leased | None]] = nothing,
    ) -> Leased | None:
        """Returns the claim of the first `look` within `wait` seconds that makes one, or a claim that is `brought`
        without a look. A `look` that finds nothing returns the seconds until something may be due, as far as is known.
        With a `wait` of 0 it looks once, at once, which is no polling."""
        if wait > 0 and self._pollers is not None and (self._counting is None or self._counting.done()):
            self._counting = asyncio.create_task(self._keep_count(self._pollers), name="queue-pollers")
        loop = asyncio.get_running_loop()
        deadline = loop.time() + wait
        while True:
            changed = self._changed
            if (given := await brought()) is not None:
                return given
            now = loop.time()
            at = max(self._looks.next(demand), self._rested) if wait > 0 else now
            if at <= now:
                found = await look()
                answered = loop.time()
                leased = found.leased if isinstance(found, LookResult) else found if isinstance(found, Leased) else None
                self._rested = answered + self._pace.answered(answered - now, len(leased.ids) if leased else 0)
                if isinstance(found, Leased):
                    return found
                pause = found.pause if isinstance(found, LookResult) else found
                now, at = answered, answered + min(self._pace.poll(), pause + self._pace.after_event())
                if changed is self._changed and (leased is None or pause > 0):
                    self._looks.nothing(demand, at)
                if leased is not None:
                    return leased
            left = deadline - now
            if left <= 0:
                return None
            self.waiting += 1
            try:
                async with asyncio.timeout(min(left, max(LEAST, at - now))):
                    await changed.wait()
            except TimeoutError:
                pass
            finally:
                self.waiting -= 1

    def wake(self) -> None:
        """Makes all waiting leases look at once: this process did something that may have made items due."""
        self._looks.changed()
        self.nudge()

    def nudge(self) -> None:
        """Wakes the waiting leases to see whether one was brought a claim; the others go on waiting."""
        self._changed.set()
        self._changed = asyncio.Event()

    def hinted(self) -> None:
        """Follows a hint of another process, which all pollers get: looks after a pause that spreads them."""
        if self._pace.pollers == 1:
            self.wake()
            return
        self._looks.event(asyncio.get_running_loop().time() + self._pace.after_event())
        self.nudge()

    async def close(self) -> None:
        """Leaves the count of pollers. Harmless when closed."""
        if self._counting is None:
            return
        await cancel(self._counting)
        self._counting = None
        if self._pollers is not None:
            try:
                await self._pollers.leave(self._me)
            except TailraceError as error:
                _LOG.info("%s; the store counts this poller for %.0f s more", error, SEEN)

    async def _keep_count(self, pollers: Pollers) -> None:
        loop = asyncio.get_running_loop()
        told = -math.inf
        while True:
            here = loop.time() - told >= TELL
            try:
                self._pace.pollers = max(1, await pollers.count(self._me, here=here))
                told = loop.time() if here else told
            except TailraceError:
                told = -math.inf  # the last count holds until the store answers again
            await asyncio.sleep(COUNT * (0.75 + 0.5 * self._random()))
