"""`Client`: the blocking face of the core in `conversation.py`, which alone knows what to say and when to try again.
It finds the gateway by itself and never touches a store (R8).

It makes blocking gRPC calls rather than run the asyncio twin's event loop in a thread: gRPC's asyncio cannot be used in
a process forked from one that used it, its blocking calls can (tried, 1.85).
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import wraps
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

import grpc

from . import scheduling
from .call import Call, searched
from .conversation import Ask, Conversation, Steps
from .discovery import find_gateways
from .function import Function
from .handle import Handle
from .identity import whoami
from .model.errors import InvalidRequest
from .model.priority import Priority
from .model.status import WorkloadStatus
from .model.units import seconds
from .wire.channel import dial_blocking, error_of
from .wire.v1.gateway_pb2_grpc import GatewayStub

P = ParamSpec("P")
T = TypeVar("T")

#: Seconds that a call is tried while the gateway does not answer.
PATIENCE = 10.0


def _blocking(core: Callable[Concatenate[Conversation, P], Steps[T]]) -> Callable[Concatenate[Client, P], T]:
    """A method that has its signature and its words from the core, which both faces share."""

    @wraps(core)
    def method(self: Client, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._run(core(self._talk, *args, **kwargs))

    return method


class Client:
    """Submits workloads and follows them, from ordinary code. Safe to share between threads, and after a fork.

    gateway  host:port, or several of one store (a list, or with commas between): a call that one does not answer is
             made to the next; default: TAILRACE_GATEWAY, else `gateway` or `gateways` in configs/client.yaml, else
             127.0.0.1:8786
    timeout  how long a call is tried while no gateway answers or takes it (default 10 s: longer than a gateway's
             restart, and than it takes to notice that its store is away); then Unavailable is raised

    A context manager; one that is not closed is closed with the program.
    """

    def __init__(self, gateway: str | Sequence[str] | None = None, *, timeout: float | str = PATIENCE) -> None:
        self._addresses = find_gateways(gateway)
        self.gateway = ", ".join(self._addresses)
        self._talk = Conversation(self._addresses, seconds(timeout), time.monotonic)
        self._lock = threading.Lock()
        self._channels: list[grpc.Channel] = []
        self._stubs: list[Any] = []
        self._process = os.getpid()
        self._closed = False
        _CLIENTS.add(self)

    def submit(
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
    ) -> Handle:
        """Submits one workload; it is durable when this returns. `tailrace.Call` says what the arguments mean.

        Raises UnknownFunction, InvalidPayload, InvalidRequest; Overloaded, StoreFull or Unavailable when trying again
        did not help within the client's timeout. Trying again never submits twice.
        """
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
        answer = self._run(self._talk.submit(call))
        return Handle(self, answer.id, call.function, answer.duplicate, spooled=answer.spooled)

    def submit_many(self, calls: Iterable[Call], *, resend: bool = True) -> list[Handle]:
        """Submits many workloads, in chunks of at most 1000 (or 1 MiB), each stored whole or not at all.

        Raises what `submit` raises when the first chunk is refused; PartlySubmitted, with the handles of what was
        accepted, when a later one is. `resend=False` does without the tokens by which a chunk that was sent twice
        is known again (the queue keeps one per workload): then a chunk that is not answered is not sent again.
        """
        return self._run(
            self._talk.submit_many(
                calls,
                resend,
                lambda call, answer: Handle(self, answer.id, call.function, answer.duplicate, spooled=answer.spooled),
            )
        )

    def status(self, id: str) -> WorkloadStatus:
        """Where a workload is now. Raises InvalidRequest when its id is not known."""
        return self._run(self._talk.status_of(id))

    def find(
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
        """Workloads of the queue that fit everything given, the newest first, at most `limit`.

        function, tenant  theirs
        states            of these names (`WorkloadStatus.state`)
        key               the ordering key; of those that have not ended
        since, until      submitted from and before: wall clock seconds or a datetime
        after             the id of the last one of a former answer: go on behind it

        What has ended is found as long as the queue keeps it (`retention` of stores.yaml). Spooled workloads are not
        in the queue yet. Raises InvalidRequest.
        """
        search = searched(function, tenant, states, key, since, until, after, limit)
        return self._run(self._talk.find(search))

    def status_many(self, ids: Iterable[str], *, tries: bool = False) -> list[WorkloadStatus | None]:
        """Where each of several workloads is now; None for an unknown id. With `tries` also how their attempts went."""
        return self._run(self._talk.status(list(ids), tries))

    def result(self, id: str, timeout: float | str | None = None) -> Any:
        """Waits for the end of a workload and returns its value (None too when its result is not kept any more).

        Raises WorkloadFailed with the reason when it did not succeed, TimeoutError after `timeout` (seconds or "10s";
        None: as long as it takes), InvalidRequest for an unknown id.
        """
        return self._run(self._talk.result(id, None if timeout is None else seconds(timeout)))

    def cancel(self, id: str) -> str:
        """Asks for the end of a workload: `cancelled` (it had not started), `requested` (its worker will be told),
        `ended` (it was over) or `unknown`."""
        return self._run(self._talk.cancel([id], whoami()))[0]

    def cancel_many(self, ids: Iterable[str]) -> list[str]:
        """The same for several: one word for each."""
        return self._run(self._talk.cancel(list(ids), whoami()))

    schedule = _blocking(scheduling.schedule)
    schedules = _blocking(scheduling.schedules)
    unschedule = _blocking(scheduling.unschedule)
    pause_schedule = _blocking(scheduling.pause)
    resume_schedule = _blocking(scheduling.resume)

    def close(self) -> None:
        """Closes the connection; the client cannot be used any more. Harmless twice."""
        with self._lock:
            self._closed = True
            channels, self._channels, self._stubs = self._channels, [], []
        if self._process == os.getpid():
            for channel in channels:
                channel.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Client of {self.gateway}>"

    def _run(self, steps: Steps[T]) -> T:
        """Makes the calls that the core asks for, and waits when it says so."""
        stubs = self._connected()
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
                    call = getattr(stubs[step.place], step.method)
                    if step.meanwhile is None:
                        answer = call(step.request, timeout=step.timeout)
                    else:
                        answering = call.future(step.request, timeout=step.timeout)
                        step.meanwhile()
                        answer = answering.result()
                except grpc.RpcError as error:
                    problem = error_of(error, self._addresses[step.place])
            else:
                time.sleep(step.seconds)

    def _connected(self) -> list[Any]:
        """A stub for each gateway; the connections are made when they are first used."""
        if self._stubs and self._process == os.getpid():
            return self._stubs
        with self._lock:
            if self._closed:
                raise InvalidRequest(f"this client of {self.gateway} is closed: make another one")
            if not self._stubs or self._process != os.getpid():
                self._process = os.getpid()
                self._channels = [dial_blocking(address) for address in self._addresses]
                self._stubs = [GatewayStub(each) for each in self._channels]  # type: ignore[no-untyped-call]
            return self._stubs

    def _forked(self) -> None:
        """In a child: another lock (the parent's may be held), and a connection of its own at the next call."""
        self._lock = threading.Lock()


#: Clients of this process, so that a fork can renew their locks.
_CLIENTS: weakref.WeakSet[Client] = weakref.WeakSet()


def _after_fork() -> None:
    for client in list(_CLIENTS):
        client._forked()


os.register_at_fork(after_in_child=_after_fork)
