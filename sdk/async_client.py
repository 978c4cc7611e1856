"""`AsyncClient`: the asyncio face of the core in `conversation.py`; the twin of `Client`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from functools import wraps
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

import grpc

from . import following, scheduling, submitting
from .call import Call, shown_as_call
from .conversation import PATIENCE, Ask, Conversation, Steps
from .discovery import find_gateways
from .gathering import Gathering
from .handle import AsyncHandle
from .model.errors import InvalidRequest, TailraceError
from .model.units import seconds
from .wire.channel import dial, error_of
from .wire.gateway_messages import Accepted
from .wire.submissions import Submissions
from .wire.v1.gateway_pb2_grpc import GatewayStub

P = ParamSpec("P")
T = TypeVar("T")


def _awaited(
    core: Callable[Concatenate[Conversation, P], Steps[T]],
) -> Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, T]]:
    """A method that has its signature and its words from the core, which both faces share."""

    @wraps(core)
    async def method(self: AsyncClient, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._run(core(self._talk, *args, **kwargs))

    return method


_Awaited = Coroutine[Any, Any, AsyncHandle]


def _takes(
    make: Callable[P, Call],
) -> Callable[[Callable[[AsyncClient, Call], _Awaited]], Callable[Concatenate[AsyncClient, P], _Awaited]]:
    """A method of a Call takes what a Call is made of."""

    def decorate(method: Callable[[AsyncClient, Call], _Awaited]) -> Callable[Concatenate[AsyncClient, P], _Awaited]:
        async def submit(self: AsyncClient, /, *args: P.args, **kwargs: P.kwargs) -> AsyncHandle:
            return await method(self, make(*args, **kwargs))

        return shown_as_call(method, submit)

    return decorate


class AsyncClient:
    """The same for asyncio: `Client` with `await`, for the event loop that it is first used in.

    gateway  host:port, or several of one store (a list, or with commas between): a call that one does not answer is
             made to the next; default: TAILRACE_GATEWAY, else `gateway` or `gateways` in configs/client.yaml, else
             127.0.0.1:8786
    timeout  how long a call is tried while no gateway answers or takes it (default 10 s: longer than a gateway's
             restart, and than it takes to notice that its store is away); then Unavailable is raised

    An async context manager; close it before its event loop ends. Not for use in forked children: see `Client`.
    """

    def __init__(self, gateway: str | Sequence[str] | None = None, *, timeout: float | str = PATIENCE) -> None:
        self._addresses = find_gateways(gateway)
        self.gateway = ", ".join(self._addresses)
        self._talk = Conversation(self._addresses, seconds(timeout), time.monotonic)
        self._channels: list[grpc.aio.Channel] = []
        self._stubs: list[Any] = []
        self._near: list[Submissions] = []
        self._closed = False
        self._together = Gathering(lambda calls: self._run(submitting.together(self._talk, calls)))

    @_takes(Call)
    async def submit(self, call: Call) -> AsyncHandle:
        """Submits one workload; it is durable when this returns. See `Client.submit`. Those that are submitted at once,
        in one turn of the event loop, share a call to the gateway."""
        return self._handle(call, await self._together.submit(call))

    async def submit_many(self, calls: Iterable[Call], *, resend: bool = True) -> list[AsyncHandle]:
        """Submits many workloads, chunk by chunk. See `Client.submit_many`."""
        return await self._run(submitting.submit_many(self._talk, calls, resend, self._handle))

    def _handle(self, call: Call, answer: Accepted) -> AsyncHandle:
        return AsyncHandle(self, answer.id, call.function, answer.duplicate, spooled=answer.spooled)

    status = _awaited(following.status)
    status_many = _awaited(following.status_many)
    find = _awaited(following.find)
    result = _awaited(following.result)
    cancel = _awaited(following.cancel)
    cancel_many = _awaited(following.cancel_many)

    schedule = _awaited(scheduling.schedule)
    schedules = _awaited(scheduling.schedules)
    unschedule = _awaited(scheduling.unschedule)
    pause_schedule = _awaited(scheduling.pause)
    resume_schedule = _awaited(scheduling.resume)

    async def close(self) -> None:
        """Closes the connection; the client cannot be used any more. Harmless twice."""
        self._closed = True
        await self._together.close()
        channels, near = self._channels, self._near
        self._channels, self._stubs, self._near = [], [], []
        for each in near:
            await each.close()
        for channel in channels:
            await channel.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<AsyncClient of {self.gateway}>"

    async def _run(self, steps: Steps[T]) -> T:
        """Makes the calls that the core asks for, and waits when it says so."""
        if self._closed:
            raise InvalidRequest(f"this client of {self.gateway} is closed: make another one")
        if not self._stubs:
            self._channels = [dial(address) for address in self._addresses]
            self._stubs = [GatewayStub(each) for each in self._channels]  # type: ignore[no-untyped-call]
            self._near = [Submissions(address) for address in self._addresses]
        answer: Any = None
        problem: Exception | None = None
        while True:
            try:
                step = steps.send(answer) if problem is None else steps.throw(problem)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]
            answer = problem = None
            if isinstance(step, Ask):
                try:
                    answer = await self._asked(step)
                except grpc.aio.AioRpcError as error:
                    problem = error_of(error, self._addresses[step.place])
                except TailraceError as error:
                    problem = error
            else:
                await asyncio.sleep(step.seconds)

    async def _asked(self, step: Ask) -> Any:
        """The answer to one call: of a submission, without gRPC where that is open."""
        near = self._near[step.place] if step.method == "Submit" else None
        call: Awaitable[Any]
        if near is not None and near.open:
            call = near.submit(step.request, step.timeout)
            if step.meanwhile is not None:
                call = asyncio.ensure_future(call)
        else:
            if near is not None:
                step.request.asks_direct = near.asks()
            call = getattr(self._stubs[step.place], step.method)(step.request, timeout=step.timeout)
        if step.meanwhile is not None:
            await asyncio.sleep(0)  # now it is on its way
            step.meanwhile()  # does not wait
        answer = await call
        if near is not None and answer.direct:
            near.told(answer.direct)
        return answer
