"""A client that tells every listener nonsense, many calls at once: a process of its own, for gRPC starves calls of a
process that is at both ends of so many. Its arguments: the addresses as JSON, how many cases, and the seed."""

from __future__ import annotations

import asyncio
import json
import struct
import sys
from collections.abc import Coroutine
from contextlib import AsyncExitStack, suppress
from typing import Any

import grpc
import msgspec
from google.protobuf import descriptor_pool
from google.protobuf.message_factory import GetMessageClass

from tailrace.model.errors import TailraceError
from tailrace.stores.server import PROTOCOLS
from tailrace.wire.channel import dial
from tailrace.wire.operators import PORTS
from tailrace.wire.stores import methods as calls_of
from tailrace.wire.v1 import delay_pb2, gateway_pb2, scheduler_pb2, stores_pb2

from .fuzzing import Fuzz

#: Calls under way at once, and seconds that one may take.
AT_ONCE, PATIENCE = 300, 0.5
#: Calls that wait by design.
WAITS = {"Watch", "Record", "Submissions"}
#: How a call ends that was refused, ended by its listener while it was made, or took too long.
ENDED = (grpc.aio.AioRpcError, grpc.aio.BaseError, asyncio.InvalidStateError, asyncio.TimeoutError, TailraceError)
FILES = {"gateway": gateway_pb2, "scheduler": scheduler_pb2, "store": stores_pb2, "delay": delay_pb2}


def methods(file: Any) -> list[Any]:
    """The methods of all services of a file, but those that wait."""
    described = descriptor_pool.Default().FindFileByName(file.DESCRIPTOR.name)
    services = described.services_by_name.values()
    return [each for service in services for each in service.methods if each.name not in WAITS]


def operator_calls(fuzz: Fuzz) -> bytes:
    """A call by name, of stores or operators, whose arguments are nearly right."""
    known = {**PROTOCOLS, **PORTS}
    name = fuzz.pick(sorted(known))
    method = fuzz.pick([*sorted(calls_of(known[name])), "open", ""])
    values = [fuzz.pick(("", "add", 0, -1, 1 << 40, None, b"x", [], {}, [1], 1e300, True)) for _ in range(4)]
    arguments = values[: fuzz.pick(range(5))]
    named = {f"a{at}": value for at, value in enumerate(arguments)}
    packed = msgspec.msgpack.encode(fuzz.pick((arguments, named)))
    call = stores_pb2.StoreCall(store=name, method=method, arguments=packed)
    data: bytes = call.SerializeToString()
    return data if fuzz.pick((True, False)) else fuzz.broken(data)


async def told(channel: Any, method: Any, cases: list[bytes]) -> None:
    """Calls a method with these bytes; any answer is well."""
    path = f"/{method.containing_service.full_name}/{method.name}"
    with suppress(*ENDED):
        async with asyncio.timeout(PATIENCE):
            if not method.client_streaming:
                call = channel.unary_stream if method.server_streaming else channel.unary_unary
                answer = call(path, request_serializer=bytes, response_deserializer=bytes)(cases[0], timeout=PATIENCE)
                if method.server_streaming:
                    async for _ in answer:
                        break
                else:
                    await answer
                return
            stream = channel.stream_stream(path, request_serializer=bytes, response_deserializer=bytes)(
                timeout=PATIENCE
            )
            for case in cases:
                await stream.write(case)
            await stream.done_writing()
            async for _ in stream:
                pass


async def spoken(address: str, data: bytes) -> None:
    """Sends bytes to a socket, and reads until the other side hangs up."""
    host, _, port = address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    with suppress(OSError, asyncio.TimeoutError):
        writer.write(data)
        await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()
        async with asyncio.timeout(PATIENCE):
            await reader.read()
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()


class Listeners:
    """The listeners by name, and a channel to each that speaks gRPC."""

    def __init__(self, addresses: dict[str, str], channels: dict[str, Any]) -> None:
        self._addresses = addresses
        self._channels = channels
        self._known = [(name, method) for name, file in FILES.items() for method in methods(file)]

    def case(self, fuzz: Fuzz, number: int) -> Coroutine[Any, Any, None]:
        """The case of this number: by gRPC, in frames of our own, or by HTTP."""
        kind = number % 8
        if kind < 6:
            name, method = self._known[number % len(self._known)]
            request = GetMessageClass(method.input_type)
            if method.name == "Call":
                return told(self._channels[name], method, [operator_calls(fuzz)])
            cases = [fuzz.case(request) for _ in range(3 if method.client_streaming else 1)]
            return told(self._channels[name], method, cases)
        if kind == 6:
            frames = [fuzz.case(scheduler_pb2.WorkerFrame) for _ in range(2)]
            path = fuzz.pick([b"/tailrace.v1.Scheduler/AttachWorker", b"/tailrace.v1.Scheduler/AttachTailer"])
            parts = enumerate([path, *frames])
            whole = b"".join(struct.pack(">IB", len(each), at > 0) + each for at, each in parts)
            return spoken(self._addresses["direct"], fuzz.broken(whole) if number % 16 < 8 else whole)
        asked = b"GET /metrics HTTP/1.1\r\nHost: x\r\nAccept: application/openmetrics-text\r\n\r\n"
        return spoken(self._addresses["metrics"], fuzz.broken(asked))


async def tell(addresses: dict[str, str], cases: int, seed: int) -> None:
    """Tells these listeners so many cases."""
    fuzz, gate = Fuzz(seed), asyncio.Semaphore(AT_ONCE)
    tasks: set[asyncio.Task[None]] = set()

    async def one(work: Coroutine[Any, Any, None]) -> None:
        async with gate:
            await work

    async with AsyncExitStack() as stack:
        channels = {name: await stack.enter_async_context(dial(addresses[name])) for name in FILES}
        listeners = Listeners(addresses, channels)
        for number in range(cases):
            task = asyncio.create_task(one(listeners.case(fuzz, number)))
            tasks.add(task)
            while len(tasks) > 2 * AT_ONCE:
                done, tasks = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                for each in done:
                    each.result()
        await asyncio.gather(*tasks)


if __name__ == "__main__":
    asyncio.run(tell(json.loads(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])))
