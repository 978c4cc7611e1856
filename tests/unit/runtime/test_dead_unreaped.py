"""Writes to a process that has died and is not reaped yet."""

from __future__ import annotations

import asyncio
import socket

import pytest

from tailrace.foundation.loop import loop_factory
from tailrace.runtime.executors import ExecutorProcess
from tailrace.runtime.frames import Quit


async def _story() -> None:
    ours, theirs = socket.socketpair()
    writer, _ = await asyncio.get_running_loop().create_unix_connection(asyncio.Protocol, sock=ours)
    executor = ExecutorProcess.__new__(ExecutorProcess)
    executor._writers, executor.covered = [writer, writer], 1
    # Given a process whose end of the sockets is gone, when this side has noticed
    theirs.close()
    async with asyncio.timeout(10):
        while not writer.is_closing():
            executor.send(Quit())
            await asyncio.sleep(0)
    # Then nothing that is said to it raises, on whichever event loop
    executor.send(Quit())
    executor.set_timer(0.0)


@pytest.mark.parametrize("choice", ["asyncio", ""])
def test_what_is_said_to_one_that_has_died_breaks_nothing(choice: str) -> None:
    with asyncio.Runner(loop_factory=loop_factory(choice)) as runner:
        runner.run(_story())
