"""The stores over gRPC: any protocol of plain data, called by the names and type hints of its own methods.

A protocol class is the whole contract. Arguments travel as a MessagePack array in the order of the method's parameters,
results as MessagePack; both ends decode strictly by the hints, so that values of other types raise InvalidRequest. Only
methods of the protocol can be called.

Two names of parameters have a meaning here: `wait` and `timeout` are seconds that the server may hold the call, at most
LONGEST_WAIT of them (it then answers as if they had passed); `max_bytes` is at most ANSWER_BYTES.
"""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import inspect
import logging
from collections.abc import Callable, Coroutine, Mapping
from types import TracebackType
from typing import Any, Concatenate, NamedTuple, ParamSpec, Protocol, Self, TypeVar, get_type_hints

import grpc
import msgspec

from ..model.errors import InvalidRequest, NotConnected, Overloaded, TailraceError
from .channel import MAX_MESSAGE, abort, dial, error_of
from .v1 import stores_pb2 as pb
from .v1.stores_pb2_grpc import StoresStub, add_StoresServicer_to_server

#: The service's full name, for health checks.
SERVICE = "tailrace.v1.Stores"
#: Seconds for a call, beside its own `wait`.
CALL_TIMEOUT = 10.0
#: Seconds that one call may wait for something to happen.
LONGEST_WAIT = 30.0
#: Payload bytes of one answer: half a message, the rest is for keys, headers and one last large item.
ANSWER_BYTES = MAX_MESSAGE // 2
#: Bytes of arguments that a server holds at once; beyond it callers are refused (Overloaded).
HELD_BYTES = 256 << 20
#: Room in a message beside arguments or value (bytes).
_ENVELOPE = 1024

_WAITS = ("wait", "timeout")
_LOG = logging.getLogger("tailrace.wire.stores")

P = ParamSpec("P")
R = TypeVar("R")


class Signature:
    """The wire format of one method of a protocol, made from its type hints. `named` (named_fields.py): fields go by
    their names, not by their order."""

    named = False

    def __init__(self, method: Callable[..., Any]) -> None:
        hints = get_type_hints(method)
        result = hints.pop("return")
        parameters = inspect.signature(method).parameters
        fields: list[Any] = [
            (name, self.form(hint))
            if parameters[name].default is inspect.Parameter.empty
            else (name, self.form(hint), parameters[name].default)
            for name, hint in hints.items()
        ]
        self.name = method.__name__
        self.arguments: Any = msgspec.defstruct(
            f"{self.name}_arguments", fields, array_like=not self.named, forbid_unknown_fields=not self.named
        )
        self.wait = next((name for name in hints if name in _WAITS), None)
        self.encode: Callable[[Any], bytes] = msgspec.msgpack.Encoder().encode
        self.decode_arguments: Callable[[bytes], Any] = msgspec.msgpack.Decoder(self.arguments).decode
        self.decode_result: Callable[[bytes], Any] = msgspec.msgpack.Decoder(self.form(result)).decode

    def form(self, hint: Any) -> Any:
        """The type to decode for a type hint: here the hint itself."""
        return hint

    def seconds(self, arguments: Any) -> float:
        """Seconds for which a call with these arguments may be held."""
        return 0.0 if self.wait is None else min(LONGEST_WAIT, max(0.0, getattr(arguments, self.wait)))

    def bounded(self, arguments: Any) -> dict[str, Any]:
        """The arguments by name, within the bounds of a call."""
        values = msgspec.structs.asdict(arguments)
        for name, value in values.items():
            if name == self.wait:
                values[name] = self.seconds(arguments)
            elif name == "max_bytes":
                values[name] = min(value, ANSWER_BYTES)
            elif dataclasses.is_dataclass(value) and hasattr(value, "max_bytes"):
                values[name] = dataclasses.replace(value, max_bytes=min(value.max_bytes, ANSWER_BYTES))  # type: ignore[type-var]
        return values


@functools.cache
def signature(method: Callable[..., Any]) -> Signature:
    """The signature of a protocol's method, made once."""
    return Signature(method)


def methods(protocol: type[Any]) -> dict[str, Callable[..., Any]]:
    """The methods that a protocol and those that it is made of declare, by name: all that can be called from
    outside."""
    return {
        name: method
        for each in protocol.__mro__
        for name, method in vars(each).items()
        if not name.startswith("_") and inspect.iscoroutinefunction(method)
    }


# The client half.


class StoreClient:
    """Calls one store of a server; the base of the typed clients. Dials at the first call, and again after `close`.

    Any call may raise the engine's own errors, Unavailable when the server cannot be reached (whether a write was kept
    is then unknown), and InvalidRequest for arguments that do not fit into a message.
    """

    def __init__(self, address: str, store: str) -> None:
        self.address = address
        self.store = store
        self._channel: grpc.aio.Channel | None = None
        self._call: Any = None

    async def invoke(self, signature: Signature, arguments: Any) -> Any:
        """Makes one call: one answer or error, no second try."""
        if self._channel is None:
            self._channel = dial(self.address)
            self._call = StoresStub(self._channel).Call  # type: ignore[no-untyped-call]
        request = call_of(self.store, signature, arguments)
        try:
            reply = await self._call(request, timeout=CALL_TIMEOUT + signature.seconds(arguments))
        except grpc.aio.AioRpcError as error:
            raise error_of(error, self.address) from None
        return signature.decode_result(reply.value)

    async def close(self) -> None:
        """Closes the channel. Harmless when closed."""
        channel, self._channel = self._channel, None
        if channel is not None:
            await channel.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


def call_of(store: str, signature: Signature, arguments: Any) -> pb.StoreCall:
    """A call as a message. Raises InvalidRequest for arguments that do not fit into one."""
    name = f"{store}.{signature.name}"
    try:
        encoded = signature.encode(arguments)
    except (UnicodeEncodeError, OverflowError, TypeError) as error:
        raise InvalidRequest(f"{name}: an argument cannot be sent: {error}") from None
    if len(encoded) > MAX_MESSAGE - _ENVELOPE:
        raise InvalidRequest(
            f"{name}: {len(encoded)} bytes of arguments, at most {MAX_MESSAGE - _ENVELOPE} fit into a call; send less "
            "at once"
        )
    return pb.StoreCall(store=store, method=signature.name, arguments=encoded)


class Invoking(Protocol):
    """The caller behind a client."""

    async def invoke(self, signature: Signature, arguments: Any) -> Any: ...


def remote(
    method: Callable[Concatenate[Any, P], Coroutine[Any, Any, R]], sign: Callable[..., Signature] = signature
) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, R]]:
    """Makes a client's method of a protocol's method, with the same parameters and result."""

    async def call(client: Invoking, /, *args: P.args, **kwargs: P.kwargs) -> R:
        form = sign(method)
        answer: R = await client.invoke(form, form.arguments(*args, **kwargs))
        return answer

    functools.update_wrapper(call, method)
    return call


# The server half.


class StoreCall(NamedTuple):
    """A call that came: its store, its method, its arguments, the function that answers it, and gRPC's context."""

    store: str
    method: str
    arguments: dict[str, Any]
    answer: Callable[..., Coroutine[Any, Any, Any]]
    context: Any


Through = Callable[[StoreCall], Coroutine[Any, Any, Any]]


class StoresService:
    """Serves engines by name; `stores` has the protocol and the engine of each. `through`: a function that makes the
    calls instead, to check or record each."""

    def __init__(
        self,
        stores: Mapping[str, tuple[type[Any], object]],
        sign: Callable[..., Signature] = signature,
        through: Through | None = None,
    ) -> None:
        self._through = through
        self._methods: dict[tuple[str, str], tuple[Signature, Callable[..., Any]]] = {
            (store, name): (sign(method), getattr(engine, name))
            for store, (protocol, engine) in stores.items()
            for name, method in methods(protocol).items()
        }
        self._names = ", ".join(sorted(stores))
        self._waiting: set[asyncio.Task[Any]] = set()
        self._held = 0
        self._closing = False

    def register(self, server: grpc.aio.Server) -> None:
        """Adds this service to a server; `channel.serve` takes this method."""
        add_StoresServicer_to_server(self, server)  # type: ignore[no-untyped-call]

    def end_waits(self) -> None:
        """Ends the calls that wait for something to happen, and refuses new ones: the server is about to stop."""
        self._closing = True
        for task in self._waiting:
            task.cancel()

    async def Call(self, request: pb.StoreCall, context: Any) -> pb.StoreResult:
        """The generated service's only method."""
        size = len(request.arguments)
        self._held += size
        try:
            return pb.StoreResult(value=await self._answer(request, context))
        except TailraceError as error:
            await abort(context, error)
        except Exception as error:
            _LOG.exception("%s failed at %s", request.store, request.method)
            await abort(context, TailraceError(f"{request.store}.{request.method} failed: {error!r}; see the log"))
        finally:
            self._held -= size
        raise AssertionError("abort raises")

    async def _answer(self, request: pb.StoreCall, context: Any) -> bytes:
        name = f"{request.store}.{request.method}"
        found = self._methods.get((request.store, request.method))
        if found is None:
            raise InvalidRequest(f"{name} is not served here; expected a method of {self._names}")
        if self._held > HELD_BYTES:
            raise Overloaded(f"the server holds {self._held} bytes of calls, more than {HELD_BYTES}; try again", 0.2)
        form, method = found
        try:
            arguments = form.bounded(form.decode_arguments(request.arguments))
        except (msgspec.DecodeError, msgspec.ValidationError) as error:
            raise InvalidRequest(f"{name}: {error}") from None
        if self._through is None:
            call = method(**arguments)
        else:
            call = self._through(StoreCall(request.store, request.method, arguments, method, context))
        value = await (call if form.wait is None else self._wait(call))
        encoded = form.encode(value)
        if len(encoded) > MAX_MESSAGE - _ENVELOPE:
            raise InvalidRequest(f"{name}: the answer has {len(encoded)} bytes and fits into no message; ask for less")
        return encoded

    async def _wait(self, call: Coroutine[Any, Any, Any]) -> Any:
        """Awaits a call that may wait; `end_waits` ends it (NotConnected)."""
        if self._closing:
            call.close()
            raise NotConnected("the store server is stopping")
        task = asyncio.get_running_loop().create_task(call)
        self._waiting.add(task)
        task.add_done_callback(self._waiting.discard)
        try:
            return await task
        except asyncio.CancelledError:
            if task.cancelled() and self._stopping():
                raise NotConnected("the store server is stopping") from None
            raise

    def _stopping(self) -> bool:
        """Whether `end_waits` cancelled a call, not its caller."""
        current = asyncio.current_task()
        return self._closing and current is not None and not current.cancelling()
