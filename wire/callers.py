"""Callers of a listener beyond its machine: who each is by its certificate, and whether its role may make the call.

Certificates are verified by gRPC when a connection is made; here each call is held against what its certificate says,
and against the clock: calls that last end within a second of the end of what admitted them.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
import inspect
import logging
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import grpc

from ..foundation.certificates import Certificates
from ..foundation.clock import SYSTEM_CLOCK, Clock
from ..foundation.x509_checks import PeerCertificate, out_of_time, parsed, peer_of
from ..model.caller import Caller
from ..model.errors import ConfigError, InvalidRequest
from ..model.role_calls import refusal
from .statuses import CallStatus, refused

#: Seconds between looks at calls that last.
LOOK = 0.5
#: Certificates of peers whose content is remembered, and refusals that the log says of each kind of caller.
REMEMBERED = 1024
#: What anybody of the fleet may call, whatever its role.
FOR_ALL = ("/grpc.health.v1.Health/", "/grpc.reflection.")
_PACKAGE = "/tailrace.v1."

_LOG = logging.getLogger("tailrace.wire")


class Admitted(NamedTuple):
    """A caller, and why it is not to be admitted any longer: asked with the wall clock, answered empty while it is."""

    caller: Caller
    ended: Callable[[float], str]


#: Who makes the call that is being answered; None: somebody of this machine, who showed its secret.
CALLER: contextvars.ContextVar[Caller | None] = contextvars.ContextVar("tailrace-caller", default=None)


class FleetCheck:
    """The check of the callers of a server that speaks TLS: by the certificates of its own fleet."""

    def __init__(self, certificates: Certificates, clock: Clock = SYSTEM_CLOCK) -> None:
        self._certificates = certificates
        self._clock = clock
        self._open: dict[asyncio.Task[Any], tuple[Admitted, str]] = {}
        self._ended: dict[asyncio.Task[Any], str] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._refused = 0

    def admit(self, context: Any, path: str, request: Any) -> Admitted:
        """Who makes a call. Raises InvalidRequest for one that may not be made."""
        found = self._peer(context)
        admitted = Admitted(found.caller, functools.partial(out_of_time, found))
        if why := admitted.ended(self._clock.wall()):
            raise InvalidRequest(why)
        mine = self._certificates.now().caller
        if mine is not None and found.caller.fleet != mine.fleet:
            raise InvalidRequest(
                f"{found.caller} is of another fleet: this is {mine}. Each fleet has certificates of its own"
            )
        if not path.startswith(FOR_ALL) and (why := refusal(found.caller, call_name(path, request))):
            raise InvalidRequest(why)
        return admitted

    def _peer(self, context: Any) -> PeerCertificate:
        shown: Iterable[bytes] = context.auth_context().get("x509_pem_cert", ())
        for each in shown:
            return _read(each)
        raise InvalidRequest("the call was made without a certificate")

    def refuse(self, why: str, path: str) -> CallStatus:
        """What is answered to a call that may not be made; the log says the first ones, and then seldom."""
        self._refused += 1
        if self._refused & (self._refused - 1) == 0:
            _LOG.warning("a call of %s was refused: %s (%d so far)", path, why, self._refused)
        return refused(why)

    # ---- calls that last

    def lasts(self, admitted: Admitted, path: str) -> asyncio.Task[Any]:
        """The running task answers a call that may last: it is cancelled when its caller is not admitted any longer."""
        task = asyncio.current_task()
        assert task is not None
        self._open[task] = (admitted, path)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(LOOK, self._look)
        return task

    def over(self, task: asyncio.Task[Any]) -> str:
        """Such a call is over: why it was ended from here; empty: it was not."""
        self._open.pop(task, None)
        return self._ended.pop(task, "")

    def _look(self) -> None:
        now = self._clock.wall()
        for task, (admitted, path) in list(self._open.items()):
            if why := admitted.ended(now):
                _LOG.warning("a call of %s was ended: %s", path, why)
                del self._open[task]
                self._ended[task] = why
                task.cancel()
        self._timer = asyncio.get_running_loop().call_later(LOOK, self._look) if self._open else None

    def stop(self) -> None:
        """Looks no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def guarded(self, handler: Any, path: str) -> Any:
        """The handler of a method, which only those get to who may call it."""
        if handler.request_streaming:
            make = (
                grpc.stream_stream_rpc_method_handler
                if handler.response_streaming
                else grpc.stream_unary_rpc_method_handler
            )
        else:
            make = (
                grpc.unary_stream_rpc_method_handler
                if handler.response_streaming
                else grpc.unary_unary_rpc_method_handler
            )
        inner = handler.stream_stream or handler.stream_unary or handler.unary_stream or handler.unary_unary
        one = not handler.request_streaming
        method = (
            self._generating(inner, path, one)
            if inspect.isasyncgenfunction(inner)
            else self._answering(inner, path, one)
        )
        return make(method, handler.request_deserializer, handler.response_serializer)

    def _answering(self, inner: Callable[[Any, Any], Any], path: str, one: bool) -> Callable[[Any, Any], Any]:
        async def method(request: Any, context: Any) -> Any:
            try:
                admitted = self.admit(context, path, request if one else None)
            except (InvalidRequest, ConfigError) as error:
                await context.abort(*self.refuse(str(error), path))
                raise
            CALLER.set(admitted.caller)
            task = self.lasts(admitted, path)
            try:
                return await inner(request, context)
            except asyncio.CancelledError:
                why = self.over(task)
                if not why:
                    raise
                task.uncancel()
                await context.abort(*refused(why))
                raise
            finally:
                self.over(task)

        return method

    def _generating(self, inner: Callable[[Any, Any], Any], path: str, one: bool) -> Callable[[Any, Any], Any]:
        async def method(request: Any, context: Any) -> Any:
            try:
                admitted = self.admit(context, path, request if one else None)
            except (InvalidRequest, ConfigError) as error:
                await context.abort(*self.refuse(str(error), path))
                raise
            task = self.lasts(admitted, path)
            try:
                async for reply in inner(request, context):
                    yield reply
            finally:
                self.over(task)

        return method


def call_name(path: str, request: Any) -> str:
    """A call as the rule of roles names it: its service and method, and of a call by name (`wire/stores.py`) that."""
    name = path.removeprefix(_PACKAGE)
    return f"{name} {request.store}.{request.method}" if name in ("Operators/Call", "Stores/Call") else name


@functools.lru_cache(maxsize=REMEMBERED)
def _read(pem: bytes) -> PeerCertificate:
    """Whose a certificate is that gRPC has verified. Raises InvalidRequest for one that is none of this platform's."""
    return peer_of(parsed(pem, "the caller's certificate")[0])
