"""`AsyncClient`: the asyncio face of the core in `conversation.py`; the twin of `Client`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from datetime import datetime
from functools import wraps
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

import grpc

from . import scheduling
from .call import Call, searched
from .client import PATIENCE
from .conversation import Ask, Conversation, Steps
from .discovery import find_gateways
from .function import Function
from .gathering import Gathering
from .handle import AsyncHandle
from .identity import whoami
from .model.errors import InvalidRequest
from .model.priority import Priority
from .model.status import WorkloadStatus
from .model.units import seconds
from .wire.channel import dial, error_of
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
        self._closed = False
        self._together = Gathering(lambda calls: self._run(self._talk.together(calls)))

    async def submit(
        self,
        function: Function[..., Any] | str,
        /,
        *args: Any,
        delay: float | str | None = None,
        at: datetime | float | None = None,
        priority: str | int | Priority | None = None,
        collection: str | None = None,
        tenant: str = "",
        key: str = "",
        dedupe_key: str = "",
        headers: Mapping[str, str] | None = None,
        expires_after: float | str | None = None,
        arguments: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> AsyncHandle:
        """Submits one workload; it is durable when this returns. See `Client.submit`. Those that are submitted at once,
        in one turn of the event loop, share a call to the gateway."""
        call = Call(
            function,
            *args,
            delay=delay,
            at=at,
            priority=priority,
            collection=collection,
            tenant=tenant,
            key=key,
            dedupe_key=dedupe_key,
            headers=headers,
            expires_after=expires_after,
            arguments=arguments,
            **kwargs,
        )
        answer = await self._together.submit(call)
        return AsyncHandle(self, answer.id, call.function, answer.duplicate, spooled=answer.spooled)

    async def submit_many(self, calls: Iterable[Call], *, resend: bool = True) -> list[AsyncHandle]:
        """Submits many workloads, chunk by chunk. See `Client.submit_many`."""
        return await self._run(
            self._talk.submit_many(
                calls,
                resend,
                lambda call, answer: AsyncHandle(
                    self, answer.id, call.function, answer.duplicate, spooled=answer.spooled
                ),
            )
        )

    async def status(self, id: str) -> WorkloadStatus:
        """Where a workload is now. Raises InvalidRequest when its id is not known. See `Client`."""
        return await self._run(self._talk.status_of(id))

    async def find(
        self,
        *,
        function: str = "",
        tenant: str = "",
        states: Sequence[str] = (),
        key: str = "",
        since: datetime | float = 0.0,
        until: datetime | float = 0.0,
        after: str = "",
        limit: int = 100,
    ) -> list[WorkloadStatus]:
        """Workloads of the queue that fit everything given. See `Client.find`."""
        search = searched(function, tenant, states, key, since, until, after, limit)
        return await self._run(self._talk.find(search))

    async def status_many(self, ids: Iterable[str], *, tries: bool = False) -> list[WorkloadStatus | None]:
        """Where each of several workloads is now; None for an unknown id. With `tries` also how their attempts went."""
        return await self._run(self._talk.status(list(ids), tries))

    async def result(self, id: str, timeout: float | str | None = None) -> Any:
        """Waits for the end of a workload and returns its value. See `Client.result`."""
        return await self._run(self._talk.result(id, None if timeout is None else seconds(timeout)))

    async def cancel(self, id: str) -> str:
        """Asks for the end of a workload: `cancelled` (it had not started), `requested` (its worker will be told),
        `ended` (it was over) or `unknown`."""
        return (await self._run(self._talk.cancel([id], whoami())))[0]

    async def cancel_many(self, ids: Iterable[str]) -> list[str]:
        """The same for several: one word for each."""
        return await self._run(self._talk.cancel(list(ids), whoami()))

    schedule = _awaited(scheduling.schedule)
    schedules = _awaited(scheduling.schedules)
    unschedule = _awaited(scheduling.unschedule)
    pause_schedule = _awaited(scheduling.pause)
    resume_schedule = _awaited(scheduling.resume)

    async def close(self) -> None:
        """Closes the connection; the client cannot be used any more. Harmless twice."""
        self._closed = True
        await self._together.close()
        channels, self._channels, self._stubs = self._channels, [], []
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
                    call = getattr(self._stubs[step.place], step.method)(step.request, timeout=step.timeout)
                    if step.meanwhile is not None:
                        await asyncio.sleep(0)  # now it is on its way
                        step.meanwhile()  # does not wait
                    answer = await call
                except grpc.aio.AioRpcError as error:
                    problem = error_of(error, self._addresses[step.place])
            else:
                await asyncio.sleep(step.seconds)
