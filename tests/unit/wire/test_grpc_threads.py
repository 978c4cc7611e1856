"""Threads of gRPC that carry a message, in a process of its own: gRPC decides once for a whole process."""

from __future__ import annotations

import importlib.metadata
import json
import os
import subprocess
import sys

from tailrace.wire.grpc_threads import MEASURED

#: Sends 100 messages there and back, five times; prints how often threads of the event engine were woken for them at
#: the least: they are woken by time too, which a busy machine makes long.
ROUND_TRIPS = """
import asyncio, json, os
from tailrace.wire.grpc_threads import few_threads
few_threads()
import grpc
from tailrace.wire.channel import dial, serve

def woken():
    count = 0
    for thread in os.listdir("/proc/self/task"):
        with open(f"/proc/self/task/{thread}/status") as lines:
            words = dict(line.split(":", 1) for line in lines)
        if words["Name"].strip() == "event_engine":
            count += int(words["voluntary_ctxt_switches"])
    return count

async def echo(messages, context):
    while (message := await context.read()) is not grpc.aio.EOF:
        await context.write(message)

async def main():
    handler = grpc.method_handlers_generic_handler("t.T", {"Echo": grpc.stream_stream_rpc_method_handler(echo)})
    server, address = await serve("127.0.0.1:0", [lambda server: server.add_generic_rpc_handlers((handler,))])
    async with dial(address) as channel:
        call = channel.stream_stream("/t.T/Echo")()
        await call.write(b"ready")
        await call.read()
        least = 1_000_000
        for _ in range(5):
            before = woken()
            for _ in range(100):
                await call.write(b"x")
                await call.read()
            least = min(least, woken() - before)
        print(json.dumps({"woken": least, "left": os.environ.get("GRPC_EXPERIMENTS")}))
        call.cancel()
    await server.stop(None)

asyncio.run(main())
"""


def _said(**environment: str) -> dict[str, object]:
    clean = {name: value for name, value in os.environ.items() if name != "GRPC_EXPERIMENTS"}
    done = subprocess.run(
        [sys.executable, "-c", ROUND_TRIPS], env=clean | environment, check=True, capture_output=True, text=True
    )
    answer: dict[str, object] = json.loads(done.stdout)
    return answer


def test_a_message_wakes_no_thread_of_the_event_engine_and_children_inherit_nothing() -> None:
    said = _said()
    assert said["left"] is None
    assert isinstance(said["woken"], int) and said["woken"] < 50  # with the event engine: two for each message or more


def test_who_has_chosen_is_left_alone() -> None:
    assert _said(GRPC_EXPERIMENTS="-event_engine_fork")["left"] == "-event_engine_fork"


def test_the_version_of_grpc_is_one_that_was_measured() -> None:
    # Whoever takes another version measures again: `few_threads` does nothing until the version is named there.
    assert importlib.metadata.version("grpcio").startswith(MEASURED)
