"""Every listener is told nonsense: it answers with a sentence or hangs up, fails at nothing, and goes on serving.

`TAILRACE_FUZZ_CASES` and `TAILRACE_FUZZ_SEED` choose how many cases there are, and which.
"""

from __future__ import annotations

import asyncio
import io
import logging
import os
import struct
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any

import grpc
import msgspec
import pytest
from google.protobuf import descriptor_pool
from google.protobuf.message_factory import GetMessageClass
from scenes.fuzzing import Fuzz
from scenes.scheduler_place import SIZES

from tailrace.assembly.separate import SeparateDelay, SeparateGateway, SeparateStore
from tailrace.assembly.settings import ConfigDirectory
from tailrace.foundation import telemetry
from tailrace.foundation.metrics_server import MetricsServer
from tailrace.foundation.unreadable import plainly
from tailrace.model.errors import TailraceError
from tailrace.scheduler.config import SchedulerConfig
from tailrace.scheduler.server import SchedulerServer
from tailrace.wire.channel import dial
from tailrace.wire.gateway import GatewayClient
from tailrace.wire.v1 import delay_pb2, gateway_pb2, scheduler_pb2, stores_pb2

ANY = "127.0.0.1:0"
CASES, SEED = int(os.environ.get("TAILRACE_FUZZ_CASES", "1000")), int(os.environ.get("TAILRACE_FUZZ_SEED", "1"))
#: Calls under way at once, and seconds that one may take.
AT_ONCE, PATIENCE = 300, 0.5
#: Calls that wait by design.
WAITS = {"Watch", "Record", "Submissions"}
FILES = {"gateway": gateway_pb2, "scheduler": scheduler_pb2, "store": stores_pb2, "delay": delay_pb2}


@pytest.fixture
async def listeners(tmp_path: Path) -> AsyncIterator[dict[str, str]]:
    """The address of each listener by what it is."""
    directory = ConfigDirectory(None)
    async with AsyncExitStack() as stack:

        async def running(part: Any) -> Any:
            await part.start()
            stack.push_async_callback(part.stop)
            return part

        store = await running(SeparateStore(tmp_path / "data", directory, ANY))
        gateway = await running(SeparateGateway(store.address, directory, ANY))
        delay = await running(SeparateDelay(store.address, directory, ANY))
        scheduler = await running(SchedulerServer(SchedulerConfig(listen=ANY, direct_listen=ANY), SIZES))

        async def samples() -> list[Any]:
            return []

        metrics = await running(MetricsServer(ANY, samples))
        yield {
            "gateway": gateway.address,
            "scheduler": scheduler.address,
            "store": store.address,
            "delay": delay.address,
            "direct": scheduler.direct_address.removeprefix("direct:"),
            "metrics": metrics.address,
        }


@pytest.fixture
def failures(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    """What any part failed at, by its log. Bytes that cannot be read are no failure: of those it has a line each."""
    caplog.set_level(logging.ERROR)
    plainly()

    def found() -> list[str]:
        return [caplog.handler.format(each) for each in caplog.records if each.exc_info and not _gave_up(each)]

    return found


def _gave_up(record: logging.LogRecord) -> bool:
    """Whether gRPC says with a traceback that whoever asked does not wait for an answer."""
    return record.getMessage().startswith("Failed sending")


def methods(file: Any) -> list[Any]:
    """The methods of all services of a file, but those that wait."""
    described = descriptor_pool.Default().FindFileByName(file.DESCRIPTOR.name)
    services = described.services_by_name.values()
    return [each for service in services for each in service.methods if each.name not in WAITS]


def operator_calls(fuzz: Fuzz) -> bytes:
    """A call by name, of stores or operators, whose arguments are nearly right."""
    from tailrace.stores.protocols import PROTOCOLS
    from tailrace.wire.operators import PORTS
    from tailrace.wire.stores import methods as of

    known = {**PROTOCOLS, **PORTS}
    name = fuzz.pick(sorted(known))
    method = fuzz.pick([*sorted(of(known[name])), "open", ""])
    values = [fuzz.pick(("", "add", 0, -1, 1 << 40, None, b"x", [], {}, [1], 1e300, True)) for _ in range(4)]
    arguments = values[: fuzz.pick(range(5))]
    named = {f"a{at}": value for at, value in enumerate(arguments)}
    packed = msgspec.msgpack.encode(fuzz.pick((arguments, named)))
    call = stores_pb2.StoreCall(store=name, method=method, arguments=packed)
    data: bytes = call.SerializeToString()
    return data if fuzz.pick((True, False)) else fuzz.broken(data)


async def told(channel: Any, method: Any, cases: list[bytes]) -> None:
    """Calls a method with these bytes; whatever it answers is well."""
    path = f"/{method.containing_service.full_name}/{method.name}"
    with suppress(grpc.aio.AioRpcError, grpc.aio.BaseError, asyncio.TimeoutError, TailraceError):
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
    """Sends bytes to a socket, and reads what comes until it is hung up on."""
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


@pytest.mark.timeout(3_000)
async def test_whatever_listeners_are_told_they_fail_at_nothing(
    listeners: dict[str, str], failures: Callable[[], list[str]]
) -> None:
    fuzz, gate = Fuzz(SEED), asyncio.Semaphore(AT_ONCE)
    tasks: set[asyncio.Task[None]] = set()

    async def one(work: Any) -> None:
        async with gate:
            await work

    async with AsyncExitStack() as stack:
        channels = {name: await stack.enter_async_context(dial(listeners[name])) for name in FILES}
        known = [(name, method) for name, file in FILES.items() for method in methods(file)]
        for number in range(CASES):
            kind = number % 8
            if kind < 6:  # by gRPC
                name, method = known[number % len(known)]
                request = GetMessageClass(method.input_type)
                if method.name == "Call":
                    cases = [operator_calls(fuzz)]
                else:
                    cases = [fuzz.case(request) for _ in range(3 if method.client_streaming else 1)]
                work = told(channels[name], method, cases)
            elif kind == 6:  # frames of our own
                frames = [fuzz.case(scheduler_pb2.WorkerFrame) for _ in range(2)]
                path = fuzz.pick([b"/tailrace.v1.Scheduler/AttachWorker", b"/tailrace.v1.Scheduler/AttachTailer"])
                parts = enumerate([path, *frames])
                whole = b"".join(struct.pack(">IB", len(each), at > 0) + each for at, each in parts)
                work = spoken(listeners["direct"], fuzz.broken(whole) if number % 16 < 8 else whole)
            else:  # HTTP
                asked = b"GET /metrics HTTP/1.1\r\nHost: x\r\nAccept: application/openmetrics-text\r\n\r\n"
                work = spoken(listeners["metrics"], fuzz.broken(asked))
            task = asyncio.create_task(one(work))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
            while len(tasks) > 2 * AT_ONCE:
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            if number % 1000 == 0:
                assert not failures(), "\n".join(failures())[:5000]
        await asyncio.gather(*tasks)
    # Then none failed at anything, and each still serves
    assert not failures(), failures()[0]
    async with GatewayClient(listeners["gateway"]) as operator:
        assert (await operator.overview()).queue is not None


@pytest.fixture
def written() -> Iterator[io.StringIO]:
    """The log of a part, as parts set it up."""
    root = logging.getLogger()
    handlers, level, own = list(root.handlers), root.level, logging.getLogger("tailrace").level
    text = io.StringIO()
    telemetry.set_up("scheduler", stream=text, environment={"TAILRACE_LOG": "text"})
    yield text
    for handler in [each for each in root.handlers if each not in handlers]:
        root.removeHandler(handler)
    root.setLevel(level)
    logging.getLogger("tailrace").setLevel(own)


async def test_bytes_that_cannot_be_read_are_one_plain_line_of_the_log_each(
    listeners: dict[str, str], written: io.StringIO
) -> None:
    # Given a part that logs as parts do
    nonsense, unread = b"\xff\xff\xff", "bytes that cannot be read: "
    # When each listener is told what no message is
    async with dial(listeners["scheduler"]) as channel:
        for name in ("Explain", "AttachWorker"):
            method = next(each for each in methods(scheduler_pb2) if each.name == name)
            await told(channel, method, [nonsense])
    greeting = b"tailrace-direct/1 /tailrace.v1.Scheduler/AttachTailer"
    frames = b"".join(struct.pack(">IB", len(each), at) + each for at, each in enumerate((greeting, nonsense)))
    await spoken(listeners["direct"], frames)
    await spoken(listeners["metrics"], b"GET /me\0trics HTTP/1.1\r\nHost: x\r\n\r\n")
    # Then each is a warning of one line
    lines = written.getvalue().splitlines()
    assert [line.partition("warning: ")[2].partition("'")[0] for line in lines] == [
        f"{unread}/tailrace.v1.Scheduler/Explain: Error parsing message with type ",
        f"{unread}/tailrace.v1.Scheduler/AttachWorker: Error parsing message with type ",
        f"{unread}/tailrace.v1.Scheduler/AttachTailer: Error parsing message with type ",
        f"{unread}Error handling request from 127.0.0.1: 400, message: Invalid char in url path: b",
    ], lines
