"""Another team's program: it submits many no-ops by one `submit_many`, in a process of its own.

    python -m tailrace.bench.flood 127.0.0.1:8786 10000 60

It writes a line when it is connected and its calls are made, submits once a line comes in, and writes the seconds that
the submission took.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import tailrace

from ..model.errors import TailraceError

FUNCTION = "noop_000"
#: Seconds that the program gets to start, and to submit.
START_WITHIN, SUBMIT_WITHIN = 60.0, 120.0
#: Seconds that each of its calls is tried.
PATIENCE = 60.0


class Flood:
    """The program, ready to submit."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def submit(self) -> float:
        """Has the program submit. Returns the seconds that it took. Raises TailraceError when it fails or takes too
        long."""
        assert self._process.stdin is not None
        self._process.stdin.write(b"\n")
        return float(await _line(self._process, SUBMIT_WITHIN))


@asynccontextmanager
async def flood(address: str, count: int, patience: float = PATIENCE) -> AsyncIterator[Flood]:
    """Starts the program and yields it ready; it is ended with the block. `patience`: seconds that each of its calls is
    tried. Raises TailraceError when it does not get ready."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", __name__, address, str(count), str(patience)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        await _line(process, START_WITHIN)
        yield Flood(process)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def _line(process: asyncio.subprocess.Process, seconds: float) -> bytes:
    assert process.stdout is not None
    try:
        line = await asyncio.wait_for(process.stdout.readline(), seconds)
    except TimeoutError:
        raise TailraceError(f"the program that submits in bulk took longer than {seconds:.0f} s") from None
    if not line:
        raise TailraceError("the program that submits in bulk ended; its own message is above")
    return line


def main(address: str, count: int, patience: float) -> None:
    """Runs the program."""
    with tailrace.Client(address, timeout=patience) as client:
        calls = [tailrace.Call(FUNCTION)] * count
        client.status_many(["0" * 16])  # so that it is connected
        print("ready", flush=True)
        sys.stdin.readline()
        began = time.perf_counter()
        client.submit_many(calls)
        print(time.perf_counter() - began, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]))
