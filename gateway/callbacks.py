"""Callbacks (webhooks) over HTTP: queued items of a built-in function, which gateways claim, send and settle. Any
number of gateways may; an item is out at one of them, and its lease outlasts its request."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
from collections import Counter
from functools import partial

import aiohttp
import msgspec
from aiohttp.abc import AbstractResolver, ResolveResult

from ..foundation.clock import Clock
from ..foundation.duties import Duties
from ..foundation.lifecycle import cancel
from ..model.claim import Leased, Settle, State
from ..model.dead_letter import DeadLetter
from ..model.demand import Cell, Closed, Demand
from ..model.errors import TailraceError
from ..model.outcome import Outcome
from ..model.plain_text import plain
from ..model.priority import Priority
from ..model.tries import Try, added
from ..model.workload import NO_EXTRA
from ..stores.dead_letters.dead_letters import DeadLetters
from ..stores.jobs.rules.callback import CALLBACK
from ..stores.queue.queue import Queue
from .callback_config import CallbackConfig
from .rules.callback import (
    Network,
    address_of,
    check_url,
    host_of,
    may_go_to,
    outcome_of,
    pause_after,
    refused,
    shown_url,
    signed,
)
from .rules.callback_places import MOST, HostPlaces, places_left

#: Seconds of the lease of a claim, and seconds of one wait for more.
LEASE, WAIT = 120.0, 10.0
#: Seconds of one wait while some tenant has all of its places, and may get one back meanwhile.
SHORT = 0.2
#: Characters of an answer that a reason shows.
SHOWN = 200
#: Seconds of the pause after a store failed.
AGAIN = 5.0

#: Seconds until a callback is sent again for whose dead letter there is no room.
NO_ROOM = 300.0
#: Names of outcomes in dead letters and records of attempts.
_OUTCOMES = {
    State.SUCCESS: "",
    State.RETRIABLE_FAILURE: Outcome.RETRY.name.lower(),
    State.FATAL_FAILURE: Outcome.FATAL.name.lower(),
}
_FATAL = _OUTCOMES[State.FATAL_FAILURE]
_LOG = logging.getLogger("tailrace.gateway")


class _Request(msgspec.Struct):
    url: str
    event: msgspec.Raw


class _ToldEvent(msgspec.Struct):
    id: str


class _CheckedResolver(AbstractResolver):
    """Resolves names to addresses that a callback may go to, for each connection anew, so that a name cannot be public
    when it is checked and private when it is called."""

    def __init__(self, allowed: list[Network]) -> None:
        self._allowed = allowed

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(host, port, family=family, type=socket.SOCK_STREAM)
        for *_, address in found:
            literal = address_of(str(address[0]))
            if literal is None or not may_go_to(literal, self._allowed):
                raise OSError(errno.EACCES, refused(host, address[0]))  # aiohttp shows its strerror
        return [
            ResolveResult(
                hostname=host, host=str(address[0]), port=port, family=kind, proto=0, flags=socket.AI_NUMERICHOST
            )
            for kind, *_, address in found
        ]

    async def close(self) -> None:
        """Holds nothing."""


class Callbacks:
    """The callbacks that one gateway sends."""

    def __init__(
        self, config: CallbackConfig, queue: Queue, letters: DeadLetters, clock: Clock, duties: Duties
    ) -> None:
        self._config = config
        self._queue = queue
        self._letters = letters
        self._clock = clock
        self._duties = duties
        self._keys, self._allowed = config.keys, config.networks
        self._hosts = HostPlaces()
        self._out: set[asyncio.Task[None]] = set()
        self._held: Counter[str] = Counter()  # callbacks that are out, by tenant
        self._tenants = False  # some callback was a tenant's

    def start(self) -> None:
        """Sends them from now on."""
        self._duties.begin(self._run(), "send-callbacks")

    async def _run(self) -> None:
        limit = aiohttp.ClientTimeout(total=self._config.timeout)
        connector = aiohttp.TCPConnector(resolver=_CheckedResolver(self._allowed), use_dns_cache=False, limit=MOST)
        async with aiohttp.ClientSession(timeout=limit, connector=connector, trust_env=False) as session:
            try:
                while True:
                    await self._send_some(session)
            finally:
                for task in [*self._out]:
                    await cancel(task)

    async def _send_some(self, session: aiohttp.ClientSession) -> None:
        if len(self._out) >= MOST:
            await asyncio.wait(self._out, return_when=asyncio.FIRST_COMPLETED)
        total, shut = places_left(self._held, MOST, tenants=self._tenants)
        if total <= 0:
            await asyncio.wait(self._out, return_when=asyncio.FIRST_COMPLETED)
            return
        closed = frozenset(Closed(CALLBACK, tenant=tenant, exact=True, all_collections=True) for tenant in shut)
        demand = Demand({Cell(CALLBACK, int(level)): total for level in Priority}, closed, total)
        try:
            leased = await self._queue.lease(demand, LEASE, SHORT if shut else WAIT)
        except TailraceError as error:
            _LOG.warning("callbacks wait: %s", error)
            await asyncio.sleep(AGAIN)
            return
        if leased is None:
            return
        for index in range(len(leased.ids)):
            tenant = leased.kinds[index].tenant
            self._tenants = self._tenants or bool(tenant)
            self._held[tenant] += 1
            task = asyncio.create_task(self._carry_out(session, leased, index), name="send-callback")
            self._out.add(task)
            task.add_done_callback(partial(self._back, tenant))

    def _back(self, tenant: str, task: asyncio.Task[None]) -> None:
        """Gives the place of a callback back."""
        self._out.discard(task)
        self._held[tenant] -= 1
        if not self._held[tenant]:
            del self._held[tenant]

    async def _carry_out(self, session: aiohttp.ClientSession, leased: Leased, index: int) -> None:
        """Sends one callback and settles it. One that cannot be settled is sent again when its lease is over."""
        try:
            end = await self._end(session, leased, index)
            if end.state is State.FATAL_FAILURE:  # it is durable before the item is gone
                before = await self._queue.tries([end.id])
                if await self._letters.add([self._letter(leased, index, end, before.get(end.id, ()))]):
                    end = _stays(end)
            await self._queue.settle(leased.fence, [], [end])
        except TailraceError as error:
            _LOG.warning("callback %s: %s", leased.ids[index], error)

    async def _end(self, session: aiohttp.ClientSession, leased: Leased, index: int) -> Settle:
        id, fence, attempt = leased.ids[index], leased.fence, leased.attempts[index]
        try:
            request = msgspec.json.decode(leased.payloads[index], type=_Request)
            event = msgspec.json.decode(request.event, type=_ToldEvent)
            check_url(request.url, self._allowed)
        except (msgspec.DecodeError, TailraceError) as error:
            return Settle(id, fence, State.FATAL_FAILURE, 0.0, attempt, reason=plain(str(error), SHOWN), outcome=_FATAL)
        # A host by tenant: a chat program's is that of many, and one whose address there is silent stops no other.
        host = f"{leased.kinds[index].tenant} {host_of(request.url)}"
        if wait := self._hosts.take(host, self._clock.monotonic()):
            before = attempt - 1  # it was not tried
            return Settle(id, fence, State.RETRIABLE_FAILURE if before else State.NEW, wait, before)
        answered = False
        try:
            state, why, answered = await self._sent(session, request, event.id)
        finally:
            self._hosts.leave(host, self._clock.monotonic(), answered=answered)
        outcome = _OUTCOMES[state]
        pause = pause_after(attempt)
        if state is State.RETRIABLE_FAILURE and pause is None:
            state = State.FATAL_FAILURE
        if state is not State.SUCCESS:
            _LOG.warning("callback %s, attempt %d: %s", leased.ids[index], attempt, why)
        delay = pause or 0.0 if state is State.RETRIABLE_FAILURE else 0.0
        return Settle(id, fence, state, delay, attempt, reason=why, outcome=outcome)

    async def _sent(self, session: aiohttp.ClientSession, request: _Request, id: str) -> tuple[State, str, bool]:
        """Sends one request. Returns the state of the item, the reason, and whether the receiver answered."""
        body, shown = bytes(request.event), shown_url(request.url)
        headers = signed(self._keys, id, int(self._clock.wall()), body)
        try:
            async with session.post(request.url, data=body, headers=headers, allow_redirects=False) as reply:
                told = (await reply.content.read(SHOWN)).decode("utf-8", "replace")
                return outcome_of(reply.status), f"{shown} answered {reply.status}: {plain(told, SHOWN)}", True
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as error:
            return State.RETRIABLE_FAILURE, plain(f"{shown}: {_why(error, request.url)}", 2 * SHOWN), False

    def _letter(self, leased: Leased, index: int, end: Settle, before: tuple[Try, ...]) -> DeadLetter:
        now = self._clock.wall()
        extra = leased.extras.get(index, NO_EXTRA)
        return DeadLetter(
            id=end.id,
            tailer="",
            kind=leased.kinds[index],
            payload=leased.payloads[index],
            outcome=end.outcome,
            reason=end.reason,
            attempts=end.attempts,
            crashes=extra.crashes,
            first_seen=now,
            died_at=now,
            tries=added(before, now, end.outcome, end.reason),
        )


def _stays(end: Settle) -> Settle:
    """The settlement of a callback whose letter found no room: it is sent again later, which costs no attempt."""
    before = max(0, end.attempts - 1)
    return end._replace(state=State.RETRIABLE_FAILURE if before else State.NEW, attempts=before, delay=NO_ROOM)


def _why(error: BaseException, url: str) -> str:
    """The words of an error, without the address that it quotes."""
    return str(error).replace(url, shown_url(url)) or type(error).__name__
