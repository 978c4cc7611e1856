"""`Client`: the blocking client. The core in `conversation.py`, which `AsyncClient` shares, decides which calls are
made and when they are tried again. The client finds the gateway by itself and never touches a store.

Its gRPC calls are blocking ones, rather than those of an `AsyncClient` with an event loop in a thread: gRPC's asyncio
cannot be used in a process forked from one that used it, its blocking calls can (tried, 1.85).
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from pathlib import Path
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

import grpc

from ..foundation.current_run import Wait, waiting
from ..foundation.shown_token import Credentials
from ..model.errors import InvalidRequest, TailraceError
from ..model.units import seconds
from ..wire.channel import dial_blocking, error_of
from ..wire.gateway_messages import Accepted
from ..wire.gateway_stub import gateway_stub
from . import scheduling, submitting, workload_calls
from .call import Call, shown_as_call
from .conversation import PATIENCE, Ask, Conversation, Look, Steps
from .discovery import Found, find_gateways, look_again
from .handle import Handle
from .job_trees import JobTrees
from .jobs import Job

P = ParamSpec("P")
T = TypeVar("T")


def _blocking(core: Callable[Concatenate[Conversation, P], Steps[T]]) -> Callable[Concatenate[Client, P], T]:
    """Makes a method of an operation of the core, with the operation's signature and docstring."""

    @wraps(core)
    def method(self: Client, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._run(core(self._talk, *args, **kwargs))

    return method


def _counted(method: Callable[P, T]) -> Callable[P, T]:
    """Makes `result` release the slot of the run that calls it while it waits, and bounds that wait."""

    @wraps(method)
    def counted(self: Client, id: str, timeout: float | str | None = None) -> Any:
        with waiting(blocking=True) as wait:
            limit = wait.limit if wait is not None and timeout is None else timeout
            return self._run(workload_calls.result(self._talk, id, limit), wait)

    return counted  # type: ignore[return-value]


def _takes(
    make: Callable[P, Call],
) -> Callable[[Callable[[Client, Call], Handle]], Callable[Concatenate[Client, P], Handle]]:
    """Makes a method that takes a Call take the arguments of a Call instead."""

    def decorate(method: Callable[[Client, Call], Handle]) -> Callable[Concatenate[Client, P], Handle]:
        def submit(self: Client, /, *args: P.args, **kwargs: P.kwargs) -> Handle:
            return method(self, make(*args, **kwargs))

        return shown_as_call(method, submit)

    return decorate


class Client(JobTrees[Job]):
    """Submits workloads and follows them, from ordinary code. Safe to share between threads, and after a fork.

    gateway  host:port, or several gateways of one store (a list, or text with commas): a call that one of them does not
             answer is made to the next. Default: TAILRACE_GATEWAY, else `gateway` or `gateways` in configs/client.yaml,
             else this user's gateway on this machine: 127.0.0.1:8786, or the address of the only one that runs. A
             gateway found on this machine is found again when it comes back at another address
    timeout  seconds or "10s" that a call is tried while no gateway answers or accepts it (default 10 s: longer than a
             gateway's restart, and than it takes to notice that its store is away); then Unavailable is raised
    tls      a folder with tls.crt, tls.key and ca.crt, for gateways on other hosts; default: TAILRACE_TLS
    token    an access token for a gateway's `token_listen`, over TLS with the `ca.crt` of that folder. Default, where
             the folder has no certificate: the token in the file of TAILRACE_TOKEN_FILE, or in TAILRACE_TOKEN

    A context manager; a client that is not closed is closed with the program.
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
        self._lock = threading.Lock()
        super().__init__(Job)
        self._channels: list[grpc.Channel] = []
        self._former: list[grpc.Channel] = []
        self._stubs: list[Any] = []
        self._process = os.getpid()
        self._closed = False
        _CLIENTS.add(self)

    @_takes(Call)
    def submit(self, call: Call) -> Handle:
        """Submits one workload, which is durable when this returns. `tailrace.Call` explains the arguments.

        Raises UnknownFunction, InvalidPayload, InvalidRequest; Overloaded, StoreFull or Unavailable when trying again
        did not help within the client's timeout. Trying again never submits twice.
        """
        return self._handle(call, self._run(submitting.submit(self._talk, call)))

    def submit_many(self, calls: Iterable[Call], *, resend: bool = True) -> list[Handle]:
        """Submits many workloads, in chunks of at most 1000 (or 1 MiB), each stored whole or not at all.

        Raises the errors of `submit` when the first chunk is refused, and PartlySubmitted, with the handles of the
        accepted workloads, when a later one is. A chunk that is not answered is sent again, with tokens by which the
        queue recognises a repeat (it keeps one per workload); `resend=False` does without both.
        """
        return self._run(submitting.submit_many(self._talk, calls, resend, self._handle))

    def _handle(self, call: Call, answer: Accepted) -> Handle:
        return Handle(self, answer.id, call.function, answer.duplicate, spooled=answer.spooled)

    status = _blocking(workload_calls.status)
    status_many = _blocking(workload_calls.status_many)
    find = _blocking(workload_calls.find)
    result = _counted(_blocking(workload_calls.result))
    cancel = _blocking(workload_calls.cancel)
    cancel_many = _blocking(workload_calls.cancel_many)
    reschedule = _blocking(workload_calls.reschedule)
    peek = _blocking(workload_calls.peek)

    schedule = _blocking(scheduling.schedule)
    schedules = _blocking(scheduling.schedules)
    unschedule = _blocking(scheduling.unschedule)
    pause_schedule = _blocking(scheduling.pause)
    resume_schedule = _blocking(scheduling.resume)

    def close(self) -> None:
        """Closes the connection; the client cannot be used any more. Calls under way raise InvalidRequest, whether or
        not the gateway heard them. Harmless twice."""
        with self._lock:
            self._closed = True
            channels, self._channels, self._former, self._stubs = [*self._channels, *self._former], [], [], []
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

    def _run(self, steps: Steps[T], wait: Wait | None = None) -> T:
        """Makes the calls and the pauses that the core asks for. `wait`: the wait of the run inside which this is
        called, by which a call under way can be stopped."""
        answer: Any = None
        problem: Exception | None = None
        while True:
            try:
                step = steps.send(answer) if problem is None else steps.throw(problem)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]
            answer = problem = None
            if isinstance(step, Ask):
                stubs, addresses = self._connected(), self._addresses
                try:
                    call = getattr(stubs[step.place], step.method)
                    if step.meanwhile is None and wait is None:
                        answer = call(step.request, timeout=step.timeout)
                    else:
                        answering = call.future(step.request, timeout=step.timeout)
                        if wait is not None:
                            wait.stops(answering.cancel)
                        if step.meanwhile is not None:
                            step.meanwhile()
                        answer = answering.result()
                except (grpc.RpcError, grpc.FutureCancelledError, ValueError) as error:
                    problem = self._problem(error, addresses[step.place])
            elif isinstance(step, Look):
                answer = self._look(step.before)
            else:
                time.sleep(step.seconds)

    def _connected(self) -> list[Any]:
        """A stub for each gateway; the connections are made when they are first used."""
        if self._stubs and self._process == os.getpid():
            return self._stubs
        with self._lock:
            if self._closed:
                raise self._is_closed()
            if not self._stubs or self._process != os.getpid():
                self._process = os.getpid()
                self._channels = [dial_blocking(address, self._shown) for address in self._addresses]
                self._stubs = [gateway_stub(each) for each in self._channels]
            return self._stubs

    def _look(self, before: Found) -> Found | None:
        """Looks for the gateway again, and dials it where it is now. Calls of other threads to its former address go
        on until it moves once more."""
        found = look_again("gateway", before)
        if found is None:
            return None
        with self._lock:
            if found.addresses != self._addresses and not self._closed:
                self._addresses, self.gateway = found.addresses, ", ".join(found.addresses)
                former, self._former = self._former, self._channels
                self._channels, self._stubs = [], []
                if self._process == os.getpid():
                    for channel in former:
                        channel.close()
        return found

    def _problem(self, error: Exception, address: str) -> Exception:
        """The error that the core gets for a failed call."""
        if self._closed:  # under this call
            return self._is_closed()
        if isinstance(error, grpc.FutureCancelledError):
            return TailraceError("the wait was given up: the run that waited was told to end")
        return error_of(error, address, shown=self._shown) if isinstance(error, grpc.RpcError) else error

    def _is_closed(self) -> InvalidRequest:
        return InvalidRequest(f"this client of {self.gateway} is closed: make another one")

    def _forked(self) -> None:
        """Gives a forked child a new lock (the parent's may be held). Its next call makes a connection of its own."""
        self._lock = threading.Lock()


#: Clients of this process, so that a fork can renew their locks.
_CLIENTS: weakref.WeakSet[Client] = weakref.WeakSet()


def _after_fork() -> None:
    for client in list(_CLIENTS):
        client._forked()


os.register_at_fork(after_in_child=_after_fork)
