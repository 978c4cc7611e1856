"""The queue on Redis: each verb is one Lua script over columns (`script.py` says which keys there are). Any
number of nodes may use one queue.

The time is the server's, so that a node whose clock is wrong starts nothing early. Polling is the base: a lease that
waits looks when something changed through this process, when another one hints so, when the next item is due, and once
a second. A queue is one slot of a Redis Cluster: all its keys have one hash tag.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ....sdk.clock import SYSTEM_CLOCK, Clock
from ....sdk.model.claim import Leased, Renewed, Settle, State
from ....sdk.model.demand import Demand
from ....sdk.model.errors import InvalidRequest, NotConnected, Unavailable
from ....sdk.model.search import Search
from ....sdk.model.tries import Try
from ...config import StoresConfig
from ...redis import RedisServer, Script
from ..admission import check, check_keys
from ..engines import QueueEngine
from ..gates import Gates
from ..group import submissions
from ..poller import Claimed, Found, Poller
from ..queue import Ageing, NewItem, Page, Status, Submitted, Tally
from ..server_clock import JUMP, ServerClock
from ..settlements import FEW, Succeeded, settlements
from ..waiting import Waiting
from . import told
from .claims import CLAIM, CLAIMED, END_LEASES, LOOK, MORE, QUIET, RENEW, SUBMIT_AND_CLAIM
from .cluster import cluster_client
from .find import find
from .hints import RedisHints
from .home import Home
from .kinds import RedisKinds
from .lease import Plan, claimed, number_of_kinds, planned
from .mend import Mender
from .options import RedisQueueOptions
from .passed import Passed
from .profile import profile
from .roll import RedisRoll
from .script import MOVED
from .settle import CANCEL, SETTLE, SWEEP, refusals, settlement
from .submit import SUBMIT, new_rows, submitted
from .told import blob, id_bytes

#: Part of this process's own interval between looks after which it looks also at what others may have changed.
OFTEN = 0.8
#: Tries of a submission that meets another server at each.
MOVES = 3
#: Bytes of memory that one that has ended may take, an estimate: its task, its token twice, its place in the list.
ROW = 512
#: Claims whose leases one step ends, and ended items that one step forgets: so long is the server held.
CLAIMS, SWEEP_ITEMS = 16, 1000

_CANCELLED = {"c": "cancelled", "r": "requested", "e": "ended", "u": "unknown"}
_LOG = logging.getLogger("tailrace.stores")


class RedisQueue:
    """A Queue under a prefix. `wait` is the lease of a source, seconds: for so long nothing is leased on a server that
    was promoted or put back. `clients` and `store_time` (µs instead of the server's clock) are for tests."""

    def __init__(
        self,
        options: RedisQueueOptions,
        config: StoresConfig | None = None,
        clock: Clock = SYSTEM_CLOCK,
        *,
        wait: float = 40.0,
        clients: Callable[[], tuple[Any, Any]] | None = None,
        store_time: Callable[[], int] | None = None,
    ) -> None:
        self._config = config or StoresConfig()
        self._options = options
        self._clock = clock
        self._time: Callable[[], int] = store_time or (lambda: -1)
        self.base = f"{{{options.prefix}}}:queue:"
        self.profile = ""  # what the server promises; empty until it was asked
        listener = options.client if options.notify and clients is None else None
        if options.cluster:
            clients = clients or (lambda: (cluster_client(options, self.base), cluster_client(options, self.base)))
        self._server = RedisServer(options, 0.0, clients)
        self._home = Home(self._server, self.base, wait, clock, durable=self._config.durability == "durable")
        self.quiet_until = -math.inf  # by the monotonic clock; until then nothing is leased
        self._kinds = RedisKinds(self._server, self.base)
        self._poller = Poller(options.poll_interval, RedisRoll(self._server, self.base))
        self._waiting = Waiting(self.settle, self._poller)
        self._submissions = submissions(self._store, self._waiting.run)
        self._settlements = settlements(self._settled, self._waiting.run)
        self._hints = RedisHints(self._server, f"{self.base}hints", listener, self._hinted)
        self._server_clock = ServerClock(options.server, wait, clock)
        self._mender = Mender(self._server, self.base, clock)
        self._turn = 0  # claims so far
        self._due: set[int] = set()  # lanes that have something due, as far as this process knows
        self._looked = -math.inf  # monotonic, of the last look at what others changed
        self._until = -math.inf  # monotonic; before it nothing that this process knows of is due outside of `_due`
        self._passed = Passed()

    async def open(self) -> None:
        """Looks at the server. Raises ConfigError for one that cannot keep a queue; one that cannot be reached now is
        tried again at each use. Harmless when open."""
        self._hints.open()
        try:
            await self._ready()
        except Unavailable as error:
            _LOG.warning("%s; trying again at each use", error)

    async def close(self) -> None:
        """Closes the connections. Harmless when closed."""
        await self._hints.close()
        await self._waiting.close()
        self.profile = ""
        await self._server.close()

    async def _ready(self) -> None:
        if self.profile:
            return
        durability = self._config.durability
        promised = await profile(self._server, self.base, durability=durability, cluster=self._options.cluster)
        await self._home.look(self._time)
        await self._kinds.relearn()
        self.profile = promised
        (_LOG.info if durability == "durable" else _LOG.warning)("%s: %s", self._server.name, promised)

    async def _run(self, script: Script, *arguments: Any, about: str) -> Any:
        if not self.profile:
            await self._ready()
        try:
            return await self._server.run(script, [self.base], self._time(), *arguments, about=about)
        except NotConnected:
            self.profile = ""  # it may be another one, or another one's, when it is back
            raise

    # Submissions: concurrent ones share a call.

    async def submit(self, items: Sequence[NewItem]) -> list[Submitted]:
        check(items, self._config.max_payload)
        check_keys(items, nul=True)
        if not items:
            return []
        await self._ready()
        return await self._submissions.add(items)

    async def _store(self, items: Sequence[NewItem]) -> list[Submitted]:
        answer: Any = None
        for _ in range(MOVES):
            await self._kinds.add(item.kind for item in items)
            answer, taken = await self._submitted(items)
            if answer[0] != MOVED:
                break
            await self._look_again()
        else:
            raise NotConnected(f"{self._server.name} is another one at each look; nothing was submitted")
        stored = submitted(answer, len(items), self._config.max_waiting)
        if not taken:
            lane_of, number_of = self._kinds.lane_of, self._kinds.numbers
            self._due.update({lane_of[number_of[item.kind]] for item in items if not item.due})
            self._wake(anything=any(item.due for item in items))
        return stored

    async def _submitted(self, items: Sequence[NewItem]) -> tuple[Any, bool]:
        """The answer of SUBMIT, and whether all that is due was claimed in the same step for somebody who waits."""
        rows, highest = new_rows(self._kinds, items), max(self._kinds.numbers[item.kind] for item in items)
        arguments = [*self._home.words, highest, self._config.max_waiting, *rows]
        await self._waiting.takers.ready(self._kinds, items)
        taker = self._waiting.takers.reserve(self._kinds, items) if self._quiet() <= 0 else None
        if taker is None:
            return await self._run(SUBMIT, *arguments, about="a submission"), False
        leased: Leased | None = None
        try:
            self._due.update({self._kinds.lane_of[self._kinds.numbers[item.kind]] for item in items})
            plan = self._planned(taker.demand, Gates(()), taker.seconds)
            both = (len(arguments), *arguments, *self._home.words, *plan.arguments)
            answer, claim = await self._run(SUBMIT_AND_CLAIM, *both, about="a submission")
            if claim and claim[0] not in (MOVED, QUIET):
                await self._are_due(claim[-1])
                if claim[0] == CLAIMED:
                    leased = await self._out_by(claim, taker.seconds)
        finally:
            self._waiting.bring(taker, leased)
        return answer, leased is not None and not self._due

    def _hinted(self) -> None:
        """Another node changed something."""
        self._until = -math.inf
        self._poller.hinted()

    def _wake(self, *, anything: bool = True) -> None:
        """Something may be due; not `anything`: `_due` says it."""
        if anything:
            self._until = -math.inf
        self._hints.tell()
        self._waiting.wake()

    # Leases.

    async def lease(self, demand: Demand, seconds: float, wait: float) -> Leased | None:
        if seconds <= 0:
            raise InvalidRequest(f"a lease of {seconds} seconds: expected more than zero")
        gates = Gates(demand.closed)
        look = partial(self._look, demand, gates, seconds)
        return await self._waiting.lease(demand, seconds, look, wait, self._quiet)

    def _quiet(self) -> float:
        """Seconds for which nothing is leased."""
        return self.quiet_until - self._clock.monotonic()

    async def _look(self, demand: Demand, gates: Gates, seconds: float) -> Found:
        """Claims what is due within the demand; else seconds until something may be. A claim is tried at once where
        something is known to be due: its script finds out what this process did not know of."""
        self._passed.forget(self._clock.monotonic(), self._poller.own_interval)
        await self._ready()
        if abs(self._clock.monotonic() - self._looked) < OFTEN * self._poller.own_interval:
            found = await self._claim(demand, gates, seconds, -1.0)
            if not isinstance(found, float) or found >= 0:
                return found
        while True:
            asked = self._clock.monotonic()
            why, *answer = await self._run(LOOK, *self._home.words, about="a look at what is due")
            if why in (MOVED, QUIET):
                return await self._not_now(why, *answer)
            moment, later, lease, due = answer
            self._home.heard()
            self._looked = asked
            if self._time() < 0:
                self._server_clock.told(moment, asked)
            if not lease or float(lease) > moment or not await self._end_leases(moment):
                break
        # What may not end yet is looked at with the next poll.
        ending = float(lease) if lease and float(lease) > moment else math.inf
        await self._are_due(due)
        pause = (min(float(later or math.inf), ending) - moment) / 1e6
        self._until = asked + min(pause, self._poller.own_interval)
        return await self._claim(demand, gates, seconds, pause)

    async def _claim(self, demand: Demand, gates: Gates, seconds: float, pause: float) -> Found:
        for _ in range(MOVES):
            plan = self._planned(demand, gates, seconds)
            if not plan.lanes:
                return pause
            why, *found = answer = await self._run(CLAIM, *self._home.words, *plan.arguments, about="a claim")
            if why in (MOVED, QUIET):
                return await self._not_now(why, *found)
            await self._are_due(found[-1])
            if why != MORE:
                break
        else:
            return 0.01
        passed = found[1] if why != CLAIMED else answer[8]
        for lane, count in zip(plan.lanes, passed, strict=True):
            self._passed.told(lane, plan.shut, count)
        if why != CLAIMED:
            return 0.0 if min(passed) < 0 else pause
        leased = await self._out_by(answer, seconds)
        left = 0.0 if self._due else max(0.0, self._until - self._clock.monotonic())
        return 0.0 if leased is None else Claimed(leased, left)

    def _planned(self, demand: Demand, gates: Gates, seconds: float) -> Plan:
        share = self._config.low_share
        return planned(self._kinds, demand, gates, self._due, self._passed, seconds, share, self._turn)

    async def _out_by(self, answer: Sequence[Any], seconds: float) -> Leased | None:
        """What an answer of CLAIM hands out."""
        if any(number not in self._kinds.kinds for number in number_of_kinds(answer[5])):
            await self._kinds.look()
        self._turn += 1
        claim = claimed(self._kinds, answer, seconds)
        self._home.heard(claim.position)
        if claim.unread:
            _LOG.warning("%s: %d workloads could not be read and are left out", self._server.name, claim.unread)
        if claim.expired:
            reason = "its deadline passed before it started"
            over = [Settle(id, claim.fence, State.EXPIRED, reason=reason) for id in claim.expired]
            await self.settle(claim.fence, [], over)
        return claim.leased

    async def _are_due(self, lanes: bytes) -> None:
        due = {int.from_bytes(lanes[index : index + 4], "big") for index in range(0, len(lanes), 4)}
        if not due <= self._kinds.lanes.keys():
            await self._kinds.look()
        self._due = due

    async def _not_now(self, why: int, moment: int = 0, until: int = 0) -> float:
        if why == QUIET:
            return (until - moment) / 1e6
        await self._look_again()
        return 0.01

    async def _look_again(self) -> None:
        """It is another server, or not what it was."""
        self.profile = ""
        await self._ready()

    async def _end_leases(self, moment: int) -> int:
        """Ends those that are over by the server's clock and by ours; how many."""
        if self._time() >= 0:
            latest = moment
        elif self._server_clock.leases_may_end:
            latest = int(self._server_clock.about() + JUMP * 1e6)
        else:
            return 0
        ended, troubles = await self._run(END_LEASES, latest, CLAIMS, about="the end of leases")
        if troubles:
            names = ", ".join(each.decode() for each in troubles)
            _LOG.warning("%s: some leases could not be ended now: %s", self._server.name, names)
        return int(ended)

    async def renew(self, ids: Sequence[str], fence: int, seconds: float, phase: State) -> Renewed:
        if phase not in (State.CLAIMED, State.PROCESSING):
            raise InvalidRequest(f"a lease is renewed as claimed or processing, not as {phase.label}")
        numbers = blob([*map(id_bytes, ids)])
        position, held, cancel = await self._run(
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

    async def _settled(
        self, group: Sequence[Succeeded], fence: int = 0, others: Sequence[Settle] = ()
    ) -> list[list[str]]:
        refused, again = await self._run(SETTLE, *settlement(group, fence, others), about="a settlement")
        if again:
            self._wake()
        return refusals(group, others, refused)

    async def cancel(self, ids: Sequence[str]) -> list[str]:
        letters, again = await self._run(CANCEL, blob([*map(id_bytes, ids)]), about="a cancellation")
        if again:
            self._wake()
        return [_CANCELLED[letter] for letter in letters.decode()]

    async def status(self, ids: Sequence[str]) -> list[Status | None]:
        await self._ready()
        return await told.statuses(self._server, self.base, self._kinds, ids)

    async def find(self, search: Search) -> Page:
        await self._ready()
        return await find(self._server, self.base, self._kinds, search)

    async def tries(self, ids: Sequence[str]) -> dict[str, tuple[Try, ...]]:
        return await told.tries(self._server, self.base, ids)

    async def counts(self) -> dict[str, int]:
        return await told.counts(self._server, self.base)

    async def tally(self) -> Tally:
        return await told.tally(self._server, self.base)

    async def due(self, most: int) -> dict[str, int]:
        return await told.due(self._server, self.base, self._kinds, self._time(), most)

    async def ageing(self) -> list[Ageing]:
        return await told.ageing(self._server, self.base, self._kinds, self._time())

    async def sweep(self) -> int:
        """Forgets what is past its retention, a bounded number at each call; returns how many."""
        keep = min(self._config.keep_ended, self._config.history_bytes // ROW)
        bounds = (int(self._config.retention * 1e6), keep, SWEEP_ITEMS)
        try:
            gone = int(await self._run(SWEEP, *bounds, about="a sweep"))
            if not gone:
                await self._mender.look(self._time())
            return gone
        except Unavailable as error:
            _LOG.warning("%s; sweeping again later", error)
            return 0


#: The sign for no in a script's answer.
_NO = ord("0")

ENGINE = QueueEngine("redis", RedisQueueOptions, RedisQueue)
