"""The conversation of a client with gateways: which calls are made, repeated and given up. It is the one core under
`Client` and `AsyncClient`.

Each operation is a generator that yields `Ask` (a call to make), `Pause` (seconds to wait) and `Look` (for the
gateway's new address), is sent the answer or thrown the error, and returns its result. The two clients only make calls,
wait and look, one blocking and one awaiting, so the rules below have no twins, and are tested without a network.

A call that was not answered is made again until `patience` seconds have passed, to the next gateway where there are
several. The operations are in `submitting.py`, `workload_calls.py` and `scheduling.py`.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Generator, Sequence
from typing import Any, NamedTuple, TypeVar

from ..model.backoff import CALL, Backoff
from ..model.errors import Overloaded, StoreFull, Unavailable
from ..model.jitter import jittered_longer, jittered_shorter
from .call import Call
from .discovery import Found

T = TypeVar("T")

#: Default of a client's `timeout`: seconds that a call is tried while no gateway answers.
PATIENCE = 10.0
#: Seconds at least between two looks for a gateway that does not answer.
LOOK_PAUSE = 0.2
#: Seconds at least that one of several gateways gets to answer (else half of the time that is left): a gateway whose
#: store is away takes two to notice.
LEAST_TRY = 3.0


class Ask(NamedTuple):
    """A call to make to the gateway at `place` in the list of addresses, given up after `timeout` seconds. `meanwhile`
    is called once the call is on its way."""

    method: str
    request: Any
    timeout: float
    place: int = 0
    meanwhile: Callable[[], None] | None = None


class Pause(NamedTuple):
    """A pause of so many seconds."""

    seconds: float


class Look(NamedTuple):
    """A look whether the gateway that was found has another address by now, at which it is called from then on. The
    answer is that address; None: it has not moved, or nobody knows."""

    before: Found


Steps = Generator[Ask | Pause | Look, Any, T]


class Conversation:
    """The calls of one client to gateways that share a store. `patience` (seconds) bounds how long a call is tried;
    `now` is monotonic. Calls go to the gateway that answered last, and at first to a random one, so that many clients
    spread. A gateway that was looked for on this machine is looked for again while it does not answer; but not one
    that answered before and whose platform is unknown, since another platform's could be found instead."""

    def __init__(self, found: Found, patience: float, now: Callable[[], float]) -> None:
        self.found = found
        self._patience = patience
        self.now = now
        self._place = random.randrange(len(found.addresses)) if len(found.addresses) > 1 else 0
        self._reached = False
        self._look_at = 0.0

    @property
    def addresses(self) -> Sequence[str]:
        """The addresses of the gateways, host:port."""
        return self.found.addresses

    def turn(self) -> None:
        """Goes on with the next gateway."""
        self._place = (self._place + 1) % len(self.addresses)

    def elsewhere(self, method: str, request: Any) -> Steps[list[Any]]:
        """The answers of the other gateways that answer: only the one that spooled a workload knows its id."""
        replies: list[Any] = []
        for step in range(1, len(self.addresses)):
            place = (self._place + step) % len(self.addresses)
            try:
                replies.append((yield Ask(method, request, min(self._patience, LEAST_TRY), place)))
            except Unavailable:
                continue
        return replies

    def answered(
        self,
        method: str,
        request: Any,
        extra: float = 0.0,
        again: bool = True,
        meanwhile: Callable[[], None] | None = None,
        calls: Sequence[Call] = (),
    ) -> Steps[Any]:
        """Makes a call, again and again while no gateway can be reached or all ask to come later, within `patience`
        (plus `extra` seconds for each answer). A try that was not answered may have been heard: from then on no refusal
        proves that nothing was stored. Where the `calls` in it are of several tenants, none of them waits for a tenant
        that has no room."""
        end = self.now() + self._patience
        backoff, places = Backoff(*CALL), len(self.addresses)
        asked, soonest = 0, math.inf  # of this round: how many gateways, and the shortest wait that one asked for
        place, heard = self._place, False
        while True:
            left = max(CALL.first, end - self.now())
            timeout = left if places == 1 else min(left, max(left / 2, LEAST_TRY))
            try:
                reply = yield Ask(method, request, timeout + extra, place, meanwhile)
                self._reached = True
                return reply
            except StoreFull as error:
                if not heard:
                    raise
                problem: Unavailable = error
            except Overloaded as error:
                if error.of_tenant and not heard and any(each.tenant != calls[0].tenant for each in calls):
                    raise
                problem = error
                soonest = min(soonest, error.retry_after)
            except Unavailable as error:
                problem, heard = error, True
                yield from self._look()
                if not again:
                    raise Unavailable(self._unreachable(error)) from None
            asked += 1
            self._place = place = (place + 1) % places
            if asked < places and self.now() < end:
                continue
            if soonest < math.inf:
                wait = jittered_longer(soonest, random.random)
            else:
                wait = jittered_shorter(backoff.pause(), random.random)
            if self.now() + wait >= end:
                if isinstance(problem, Overloaded) and not heard:
                    raise problem
                raise Unavailable(self._unreachable(problem)) from None
            asked, soonest = 0, math.inf
            yield Pause(wait)

    def _look(self) -> Steps[None]:
        """Goes on with the gateway at its new address, if it moved."""
        found, now = self.found, self.now()
        if found.looked and (found.home or not self._reached) and now >= self._look_at:
            self._look_at = now + LOOK_PAUSE
            elsewhere = yield Look(found)
            if elsewhere is not None:
                self.found = elsewhere

    def _unreachable(self, error: Unavailable) -> str:
        reason = str(error).removesuffix("; is it running?")
        return (
            f"no answer from {self._name()} within {self._patience:g} seconds ({reason}). "
            "Is it running? Start it with `tailrace up`, or give its address: the gateway argument or TAILRACE_GATEWAY."
            f"{self.found.reason}"
        )

    def _name(self) -> str:
        if len(self.addresses) == 1:
            return f"the gateway at {self.addresses[0]}"
        return f"the gateways at {', '.join(self.addresses)}"
