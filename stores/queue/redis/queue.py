"""The queue on Redis: each method is one Lua script over columns (`script.py` lists the keys). Any number of nodes may
use one queue.

The time is the server's, so that a node whose clock is wrong starts nothing early. A waiting lease looks when this
process changed something, when another one hints that it did, when the next item is due, and in any case once a second.
A queue is one slot of a Redis Cluster: all its keys have one hash tag.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ....foundation.clock import SYSTEM_CLOCK, Clock
from ....model.claim import Leased, Renewed, ResultSettlement, Settle, State
from ....model.demand import Demand
from ....model.errors import InvalidRequest, NotConnected, Unavailable
from ....model.one_item import BEHIND, CHANGED
from ....model.reopening import Trouble
from ....model.search import Search
from ....model.tries import Try
from ....model.workload import Headers
from ...config import StoresConfig
from ...redis.server import RedisServer
from ...trusted_time import TrustedTime, server_time
from ..admission import check, check_changes
from ..callback import refuse_callbacks
from ..counts import Held
from ..engines import QueueEngine
from ..gates import ShutLanes
from ..lifecycle import LEASED, WAITING
from ..poller import Poller
from ..queue import Ageing, ItemContent, NewItem, Page, Reschedule, Status, Submitted, Tally
from ..shared_settlements import FEW, Succeeded, settlements
from ..shared_submissions import submissions
from ..waiting import WaitingClaims
from . import reports
from .checked_server import CheckedRedis
from .claiming import RedisClaiming
from .claims import QUIET, RENEW, SUBMIT_AND_CLAIM
from .cluster import cluster_client
from .find import find
from .hints import RedisHints
from .items import peek, rescheduled
from .options import RedisQueueOptions
from .pollers import RedisPollers
from .repair import Repair
from .reports import blob, id_bytes
from .script import MOVED
from .settle import CANCEL, NOW, SETTLE, SWEEP, refusals, settlement
from .submit import SUBMIT, new_rows, submitted

#: Most tries of a submission that finds a different server each time.
MOVES = 3
#: Estimated bytes of memory of an ended workload: its task, its token twice, its place in the list.
ROW = 512
#: Most ended items that one step removes: it blocks the server meanwhile.
SWEEP_ITEMS = 1000

_CANCELLED = {"c": "cancelled", "r": "requested", "e": "ended", "u": "unknown"}
#: The place, as refusals name it.
_HERE = "a queue on Redis"

_LOG = logging.getLogger("tailrace.stores")


class RedisQueue:
    """A Queue under a prefix. `wait`: the lease of a source, seconds; for this long nothing is leased on a server that
    was promoted or put back from a copy. `fleet`: the fleet of this process; empty: none. `clients` and `store_time`
    (returns µs to use instead of the server's clock) are for tests."""

    def __init__(
        self,
        options: RedisQueueOptions,
        config: StoresConfig | None = None,
        clock: Clock = SYSTEM_CLOCK,
        *,
        wait: float = 40.0,
        fleet: str = "",
        clients: Callable[[], tuple[Any, Any]] | None = None,
        store_time: Callable[[], int] | None = None,
        times: dict[str, TrustedTime] | None = None,
    ) -> None:
        self._config = config or StoresConfig()
        self._clock = clock
        self._trusted = server_time(clock, times, "Redis server of the queue")
        self.base = f"{{{options.prefix}}}:queue:"
        listener = options.client if options.notify and clients is None else None
        if options.cluster:
            clients = clients or (lambda: (cluster_client(options, self.base), cluster_client(options, self.base)))
        # On a cluster every script declares two keys: `base` is never a key, and `meta` is the first that is made.
        declared = (f"{self.base}meta",) if options.cluster else ()
        self._server = RedisServer(options, 0.0, clients, declared, f"{self.base}counted")
        self._time: Callable[[], int] = store_time or (lambda: -1)
        self._ground = CheckedRedis(self._server, self.base, options, self._config, wait, clock, self._time, fleet)
        self._home, self._kinds = self._ground.home, self._ground.kinds
        self.quiet_until = -math.inf  # nothing is leased before this time of the monotonic clock
        self._poller = Poller(options.poll_interval, RedisPollers(self._server, self.base))
        self._claiming = RedisClaiming(self._ground, self._poller, self._config.low_share, self.settle)
        self._waiting = WaitingClaims(self.settle, self._poller)
        self._submissions = submissions(self._store, self._waiting.run)
        self._settlements = settlements(self._settled, self._waiting.run)
        self._hints = RedisHints(self._server, f"{self.base}hints", listener, self._hinted)
        self._mender = Repair(self._server, self.base, clock)

    @property
    def profile(self) -> str:
        """The server's promises, as text; empty until they were read."""
        return self._ground.profile

    def troubles(self) -> list[Trouble]:
        """Troubles of the server and of its data, for operators."""
        return [*self._server.troubles("queue"), *self._home.troubles()]

    async def open(self) -> None:
        """Checks the server. Raises ConfigError for one that cannot hold a queue; a server that cannot be reached now
        is tried again at each use. Harmless when open."""
        self._hints.open()
        try:
            await self._ground.ready()
        except Unavailable as error:
            _LOG.warning("%s; trying again at each use", error)

    async def close(self) -> None:
        """Closes the connections. Harmless when closed."""
        await self._hints.close()
        await self._waiting.close()
        await self._ground.close()

    # Submissions: concurrent ones share a call.

    async def tell_again(self, items: Sequence[NewItem]) -> list[Submitted]:
        raise InvalidRequest(f"on_done: {_HERE} sends no callbacks of workloads, so none is sent again")

    async def submit(self, items: Sequence[NewItem]) -> list[Submitted]:
        check(items, self._config.max_payload)
        refuse_callbacks(items, _HERE)
        if not items:
            return []
        await self._ground.ready()
        return await self._submissions.add(items)

    async def _store(self, items: Sequence[NewItem]) -> list[Submitted]:
        answer: Any = None
        for _ in range(MOVES):
            await self._kinds.add(item.kind for item in items)
            answer, taken = await self._submitted(items)
            if answer[0] != MOVED:
                break
            await self._ground.look_again()
        else:
            raise NotConnected(f"{self._server.name}: a different server answers each time; nothing was submitted")
        stored = submitted(answer, len(items), self._config.max_waiting)
        self._home.stored(next((int(each.id, 16) for each in reversed(stored) if not each.duplicate), 0))
        if not taken:
            lane_of, number_of = self._kinds.lane_of, self._kinds.numbers
            self._claiming.are_due({lane_of[number_of[item.kind]] for item in items if not item.due})
            self._wake(anything=any(item.due for item in items))
        else:
            await self._waiting.takers.pushed()
        return stored

    async def _submitted(self, items: Sequence[NewItem]) -> tuple[Any, bool]:
        """Returns the answer of SUBMIT, and whether all due items were claimed in the same step for a lease that
        waits."""
        rows, highest = (
            new_rows(self._kinds, items, self._config.key_rule),
            max(self._kinds.numbers[item.kind] for item in items),
        )
        arguments = [*self._home.words, highest, self._config.max_waiting, *rows]
        await self._waiting.takers.ready(items)
        taker = self._waiting.takers.reserve(items) if self._quiet() <= 0 else None
        if taker is None:
            return await self._ground.run(SUBMIT, *arguments, about="a submission"), False
        leased: Leased | None = None
        try:
            self._claiming.are_due({self._kinds.lane_of[self._kinds.numbers[item.kind]] for item in items})
            plan = self._claiming.plan(taker.demand, taker.gates, taker.seconds)
            both = (len(arguments), *arguments, *self._home.words, *plan.arguments)
            answer, claim = await self._ground.run(SUBMIT_AND_CLAIM, *both, about="a submission")
            if claim and claim[0] not in (MOVED, QUIET):
                leased = await self._claiming.took(claim, taker.seconds)
        finally:
            self._waiting.bring(taker, leased)
        return answer, leased is not None and not self._claiming.due

    def _hinted(self) -> None:
        """Follows a hint of another node that it changed something."""
        self._claiming.changed()
        self._poller.hinted()

    def _wake(self, *, anything: bool = True) -> None:
        """Makes waiting leases look at once. With `anything` false, the lanes with due items are known already."""
        if anything:
            self._claiming.changed()
        self._hints.tell()
        self._waiting.wake()

    # Leases.

    async def lease(self, demand: Demand, seconds: float, wait: float) -> Leased | None:
        if seconds <= 0:
            raise InvalidRequest(f"a lease of {seconds} seconds: expected more than zero")
        gates = ShutLanes(demand.closed)
        look = partial(self._claiming.look, demand, gates, seconds)
        return await self._waiting.lease(demand, seconds, look, wait, self._quiet)

    def _quiet(self) -> float:
        """Seconds for which nothing may be leased."""
        return self.quiet_until - self._clock.monotonic()

    async def renew(self, ids: Sequence[str], fence: int, seconds: float, phase: State) -> Renewed:
        if phase is not State.PROCESSING:
            raise InvalidRequest(f"a lease is renewed as processing, not as {phase.label}")
        numbers = blob([*map(id_bytes, ids)])
        position, held, cancel = await self._ground.run(
            RENEW, fence, int(seconds * 1e6), int(phase), numbers, about="a renewal"
        )
        self._home.position = max(self._home.position, position)
        return Renewed(
            seconds,
            [each for each, kept in zip(ids, held, strict=True) if kept == _NO],
            [each for each, told in zip(ids, cancel, strict=True) if told != _NO],
        )

    # Ends.

    async def settle(self, fence: int, succeeded: Sequence[str], others: Sequence[Settle]) -> list[str]:
        if not others and 0 < len(succeeded) <= FEW:
            return await self._settlements.add(Succeeded(fence, succeeded))
        return (await self._settled([Succeeded(fence, succeeded)], fence, others))[0]

    async def settle_results(self, fence: int, succeeded: Sequence[str], others: Sequence[Settle]) -> ResultSettlement:
        return ResultSettlement(await self.settle(fence, succeeded, others))  # there are no jobs on Redis

    async def _settled(
        self, group: Sequence[Succeeded], fence: int = 0, others: Sequence[Settle] = ()
    ) -> list[list[str]]:
        refused, again = await self._ground.run(SETTLE, *settlement(group, fence, others), about="a settlement")
        if again:
            self._wake()
        return refusals(group, others, refused)

    async def cancel(self, ids: Sequence[str]) -> list[str]:
        letters, again = await self._ground.run(CANCEL, blob([*map(id_bytes, ids)]), about="a cancellation")
        if again:
            self._wake()
        return [_CANCELLED[letter] for letter in letters.decode()]

    # One item at a time.

    async def reschedule(self, changes: Sequence[Reschedule]) -> list[str]:
        check_changes(changes)
        answers = [await rescheduled(self._ground, each) for each in changes]
        if not {CHANGED, BEHIND}.isdisjoint(answers):
            self._wake()
        return answers

    async def peek(self, id: str, max_bytes: int) -> ItemContent | None:
        return await peek(self._ground, id, max_bytes)

    async def status(self, ids: Sequence[str]) -> list[Status | None]:
        await self._ground.ready()
        return await reports.statuses(self._server, self.base, self._kinds, ids)

    async def find(self, search: Search) -> Page:
        await self._ground.ready()
        return await find(self._server, self.base, self._kinds, search, self._config.key_rule)

    async def tries(self, ids: Sequence[str]) -> dict[str, tuple[Try, ...]]:
        return await reports.tries(self._server, self.base, ids)

    async def headers(self, ids: Sequence[str]) -> dict[str, Headers]:
        return await reports.headers(self._server, self.base, ids)

    async def counts(self) -> dict[str, int]:
        return await reports.counts(self._server, self.base)

    async def held(self) -> Held:
        items, kinds = await self.counts(), dict(self._kinds.kinds)
        live = sum(items[state.label] for state in WAITING | LEASED)
        if live * 2 <= self._config.max_waiting or not any(kind.tenant for kind in kinds.values()):
            return Held(self._config.max_waiting, live, {})
        return Held(self._config.max_waiting, live, await reports.held(self._server, self.base, kinds))

    async def tally(self) -> Tally:
        return await reports.tally(self._server, self.base)

    async def due(self, most: int) -> dict[str, int]:
        return await reports.due(self._server, self.base, self._kinds, self._time(), most)

    async def ageing(self) -> list[Ageing]:
        return await reports.ageing(self._server, self.base, self._kinds, self._time())

    async def sweep(self) -> int:
        """Ends leases that are over. Removes a bounded number of the items that are past their retention, and returns
        how many."""
        keep = min(self._config.keep_ended, self._config.history_bytes // ROW)
        try:
            await self._ground.look_now_and_then()
            if self._quiet() <= 0:
                await self._claiming.end_over()
            now = int(await self._ground.run(NOW, about="the time"))
            oldest = self._trusted.micros(now) - int(self._config.retention * 1e6)
            gone = int(await self._ground.run(SWEEP, oldest, keep, SWEEP_ITEMS, about="a sweep"))
            if not gone:
                await self._mender.look(self._time())
            return gone
        except Unavailable as error:
            _LOG.warning("%s; sweeping again later", error)
            return 0


#: The byte for "no" in a script's answer.
_NO = ord("0")

ENGINE = QueueEngine("redis", RedisQueueOptions, RedisQueue)
