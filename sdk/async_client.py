"""`AsyncClient`: the asyncio client. It shares the core in `conversation.py` with `Client`, the blocking one."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from functools import wraps
from pathlib import Path
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

import grpc

from ..foundation.current_run import waiting
from ..foundation.shown_token import Credentials
from ..model.errors import InvalidRequest, TailraceError
from ..model.units import seconds
from ..wire.channel import dial, error_of
from ..wire.gateway_messages import Accepted
from ..wire.gateway_stub import gateway_stub
from ..wire.submissions import Submissions, Unsent
from . import scheduling, submitting, workload_calls
from .call import Call, shown_as_call
from .conversation import PATIENCE, Ask, Conversation, Look, Steps
from .discovery import Found, find_gateways, look_again
from .handle import AsyncHandle
from .job_trees import JobTrees
from .jobs import AsyncJob
from .shared_calls import SharedCalls

P = ParamSpec("P")
T = TypeVar("T")


def _awaited(
    core: Callable[Concatenate[Conversation, P], Steps[T]],
) -> Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, T]]:
    """Makes a method of an operation of the core, with the operation's signature and docstring."""

    @wraps(core)
    async def method(self: AsyncClient, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._run(core(self._talk, *args, **kwargs))

    return method


def _counted(method: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, Coroutine[Any, Any, T]]:
    """Makes `result` release the slot of the run that calls it while it waits, and bounds that wait."""

    @wraps(method)
    async def counted(self: AsyncClient, id: str, timeout: float | str | None = None) -> Any:
        with waiting(blocking=False) as wait:
            limit = wait.limit if wait is not None and timeout is None else timeout
            return await self._run(workload_calls.result(self._talk, id, limit))

    return counted  # type: ignore[return-value]


_Awaited = Coroutine[Any, Any, AsyncHandle]


def _takes(
    make: Callable[P, Call],
) -> Callable[[Callable[[AsyncClient, Call], _Awaited]], Callable[Concatenate[AsyncClient, P], _Awaited]]:
    """Makes a method that takes a Call take the arguments of a Call instead."""

    def decorate(method: Callable[[AsyncClient, Call], _Awaited]) -> Callable[Concatenate[AsyncClient, P], _Awaited]:
        async def submit(self: AsyncClient, /, *args: P.args, **kwargs: P.kwargs) -> AsyncHandle:
            return await method(self, make(*args, **kwargs))

        return shown_as_call(method, submit)

    return decorate


class AsyncClient(JobTrees[AsyncJob]):
    """Submits workloads and follows them, from asyncio: `Client` with `await`. It belongs to the event loop that first
    uses it.

    gateway  host:port, or several gateways of one store (a list, or text with commas): a call that one of them does not
             answer is made to the next. Default: TAILRACE_GATEWAY, else `gateway` or `gateways` in configs/client.yaml,
             else this user's gateway on this machine: 127.0.0.1:8786, or the address of the only one that runs. A
             gateway found on this machine is found again when it comes back at another address
    timeout  seconds or "10s" that a call is tried while no gateway answers or accepts it (default 10 s: longer than a
             gateway's restart, and than it takes to notice that its store is away); then Unavailable is raised
    tls      a folder with tls.crt, tls.key and ca.crt, for gateways on other hosts; default: TAILRACE_TLS
    token    an access token for a gateway's `token_listen`, over TLS with the `ca.crt` of that folder. Default, where
             the folder has no certificate: the token in the file of TAILRACE_TOKEN_FILE, or in TAILRACE_TOKEN

    An async context manager; close it before its event loop ends. Not for use in forked children: see `Client`.
    """

    def __init__(
        self,
        gateway: str | Sequence[str] | None = None,
        *,
        timeout: float | str = PATIENCE,
        tls: str | Path | None = None,
        token: str | None = None,
    ) -> None:
        found = find_gateways(gateway)
        self._shown = Credentials.given(tls, token)
        self._addresses = found.addresses
        self.gateway = ", ".join(self._addresses)
        self._talk = Conversation(found, seconds(timeout), time.monotonic)
        super().__init__(AsyncJob)
        self._channels: list[grpc.aio.Channel] = []
        self._former: list[grpc.aio.Channel] = []
        self._stubs: list[Any] = []
        self._near: list[Submissions] = []
        self._closed = False
        self._together = SharedCalls(lambda calls, tokens: self._run(submitting.together(self._talk, calls, tokens)))

    @_takes(Call)
    async def submit(self, call: Call) -> AsyncHandle:
        """Submits one workload, which is durable when this returns. See `Client.submit`. Submissions of one turn of the
        event loop share a call to the gateway."""
        return self._handle(call, await self._together.submit(call))

    async def submit_many(self, calls: Iterable[Call], *, resend: bool = True) -> list[AsyncHandle]:
        """Submits many workloads, chunk by chunk. See `Client.submit_many`."""
        return await self._run(submitting.submit_many(self._talk, calls, resend, self._handle))

    def _handle(self, call: Call, answer: Accepted) -> AsyncHandle:
        return AsyncHandle(self, answer.id, call.function, answer.duplicate, spooled=answer.spooled)

    status = _awaited(workload_calls.status)
    status_many = _awaited(workload_calls.status_many)
    find = _awaited(workload_calls.find)
    result = _counted(_awaited(workload_calls.result))
    cancel = _awaited(workload_calls.cancel)
    cancel_many = _awaited(workload_calls.cancel_many)
    reschedule = _awaited(workload_calls.reschedule)
    peek = _awaited(workload_calls.peek)

    schedule = _awaited(scheduling.schedule)
    schedules = _awaited(scheduling.schedules)
    unschedule = _awaited(scheduling.unschedule)
    pause_schedule = _awaited(scheduling.pause)
    resume_schedule = _awaited(scheduling.resume)

    async def close(self) -> None:
        """Closes the connection; the client cannot be used any more. Calls under way raise InvalidRequest, whether or
        not the gateway heard them. Harmless twice."""
        self._closed = True
        await self._together.close(self._is_closed())
        channels, near = [*self._channels, *self._former], self._near
        self._channels, self._former, self._stubs, self._near = [], [], [], []
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
        """Makes the calls and the pauses that the core asks for."""
        if self._closed:
            raise self._is_closed()
        if not self._stubs:
            self._dial()
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
                    problem = error_of(error, self._addresses[step.place], shown=self._shown)
                except TailraceError as error:
                    problem = error
                except asyncio.CancelledError:
                    if not self._closed_under():
                        raise
                    problem = self._is_closed()
            elif isinstance(step, Look):
                answer = await self._look(step.before)
            else:
                await asyncio.sleep(step.seconds)

    def _dial(self) -> None:
        self._channels = [dial(address, self._shown) for address in self._addresses]
        self._stubs = [gateway_stub(each) for each in self._channels]
        self._near = [Submissions(address) for address in self._addresses]

    async def _look(self, before: Found) -> Found | None:
        """Looks for the gateway again, and dials it where it is now. Calls to its former address go on until it moves
        once more."""
        found = look_again("gateway", before)
        if found is not None and found.addresses != self._addresses and not self._closed:
            self._addresses, self.gateway = found.addresses, ", ".join(found.addresses)
            former, self._former, near = self._former, self._channels, self._near
            self._dial()
            for each in near:
                await each.close()
            for channel in former:
                await channel.close()
        return found

    def _closed_under(self) -> bool:
        """Whether the channel of a call was closed under it; otherwise its caller was cancelled."""
        task = asyncio.current_task()
        return self._closed and task is not None and not task.cancelling()

    def _is_closed(self) -> InvalidRequest:
        return InvalidRequest(f"this client of {self.gateway} is closed: make another one")

    async def _asked(self, step: Ask) -> Any:
        """Makes one call and returns its answer; a submission goes over a plain socket, not gRPC, where one is open."""
        near = self._open_near(step)
        if near is not None and near.open:
            try:
                return await self._answer(near.submit(step.request, step.timeout), step)
            except Unsent:
                step = step._replace(meanwhile=None)  # it was called already
                near = self._open_near(step)
        if near is not None:
            step.request.asks_direct = near.asks()
        call = getattr(self._stubs[step.place], step.method)
        answer = await self._answer(call(step.request, timeout=step.timeout), step)
        if near is not None and answer.direct:
            near.told(answer.direct)
        return answer

    def _open_near(self, step: Ask) -> Submissions | None:
        """The plain socket for submissions; None for other calls. Raises InvalidRequest when this client is closed."""
        if self._closed:
            raise self._is_closed()
        return self._near[step.place] if step.method == "Submit" else None

    async def _answer(self, call: Awaitable[Any], step: Ask) -> Any:
        if step.meanwhile is not None:
            call = asyncio.ensure_future(call) if asyncio.iscoroutine(call) else call  # others have begun
            await asyncio.sleep(0)  # now it is on its way
            step.meanwhile()  # does not wait
        return await call
