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
from collections.abc import Iterable, Mapping
from datetime import datetime
from types import TracebackType
from typing import Any, Self, TypeVar

import grpc

from .call import Call
from .conversation import Ask, Conversation, Steps
from .discovery import find_gateway
from .function import Function
from .handle import Handle
from .identity import whoami
from .model.errors import InvalidRequest
from .model.priority import Priority
from .model.status import WorkloadStatus
from .model.units import seconds
from .wire.channel import dial_blocking, error_of
from .wire.v1.gateway_pb2_grpc import GatewayStub

T = TypeVar("T")

#: Seconds that a call is tried while the gateway does not answer.
PATIENCE = 10.0


class Client:
    """Submits workloads and follows them, from ordinary code. Safe to share between threads, and after a fork.

    gateway  host:port; default: TAILRACE_GATEWAY, else `gateway` in configs/client.yaml, else 127.0.0.1:8786
    timeout  how long a call is tried while the gateway does not answer (default 10 s); then Unavailable is raised

    A context manager; one that is not closed is closed with the program.
    """

    def __init__(self, gateway: str | None = None, *, timeout: float | str = PATIENCE) -> None:
        self.gateway = find_gateway(gateway)
        self._talk = Conversation(self.gateway, seconds(timeout), time.monotonic)
        self._lock = threading.Lock()
        self._channel: grpc.Channel | None = None
        self._stub: Any = None
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
        return Handle(self, answer.id, call.function, answer.duplicate)

    def submit_many(self, calls: Iterable[Call], *, resend: bool = True) -> list[Handle]:
        """Submits many workloads, in chunks of at most 1000 (or 1 MiB), each stored whole or not at all.

        Raises what `submit` raises when the first chunk is refused; PartlySubmitted, with the handles of what was
        accepted, when a later one is. `resend=False` does without the tokens by which a chunk that was sent twice
        is known again (the queue keeps one per workload): then a chunk that is not answered is not sent again.
        """
        return self._run(
            self._talk.submit_many(
                calls, resend, lambda call, answer: Handle(self, answer.id, call.function, answer.duplicate)
            )
        )

    def status(self, id: str) -> WorkloadStatus:
        """Where a workload is now. Raises InvalidRequest when its id is not known."""
        return self._run(self._talk.status_of(id))

    def status_many(self, ids: Iterable[str]) -> list[WorkloadStatus | None]:
        """Where each of several workloads is now; None for an unknown id."""
        return self._run(self._talk.status(list(ids)))

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

    def close(self) -> None:
        """Closes the connection; the client cannot be used any more. Harmless twice."""
        with self._lock:
            self._closed = True
            channel, self._channel, self._stub = self._channel, None, None
        if channel is not None and self._process == os.getpid():
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
        stub = self._connected()
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
                    answer = getattr(stub, step.method)(step.request, timeout=step.timeout)
                except grpc.RpcError as error:
                    problem = error_of(error, self.gateway)
            else:
                time.sleep(step.seconds)

    def _connected(self) -> Any:
        if self._stub is not None and self._process == os.getpid():
            return self._stub
        with self._lock:
            if self._closed:
                raise InvalidRequest(f"this client of {self.gateway} is closed: make another one")
            if self._stub is None or self._process != os.getpid():
                self._process = os.getpid()
                self._channel = dial_blocking(self.gateway)
                self._stub = GatewayStub(self._channel)  # type: ignore[no-untyped-call]
            return self._stub

    def _forked(self) -> None:
        """In a child: another lock (the parent's may be held), and a connection of its own at the next call."""
        self._lock = threading.Lock()


#: Clients of this process, so that a fork can renew their locks.
_CLIENTS: weakref.WeakSet[Client] = weakref.WeakSet()


def _after_fork() -> None:
    for client in list(_CLIENTS):
        client._forked()


os.register_at_fork(after_in_child=_after_fork)
