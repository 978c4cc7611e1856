"""A Redis for the scenarios: the one that TAILRACE_BENCH_REDIS names, else redis-server on loopback for one run."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from ..sdk.model.errors import ConfigError

VARIABLE = "TAILRACE_BENCH_REDIS"
#: Every write is on disk before it is answered, as a delay service wants it.
DURABLE = ("--appendonly", "yes", "--appendfsync", "always", "--save", "")
START_WITHIN = 10.0


@contextlib.contextmanager
def redis_server(folder: Path, settings: Sequence[str] = DURABLE) -> Iterator[str]:
    """The URL of a server; one of our own has its data in `folder`, and these settings. Raises ConfigError where there
    is none."""
    if address := os.environ.get(VARIABLE, ""):
        yield address
        return
    program = shutil.which("redis-server")
    if program is None:
        raise ConfigError(
            f"redis-server is not installed: install it, or name a server in {VARIABLE} (redis://HOST:PORT/0)"
        )
    folder.mkdir(parents=True, exist_ok=True)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [program, "--port", str(port), "--bind", "127.0.0.1", "--dir", str(folder), *settings]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        until = time.monotonic() + START_WITHIN
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1.0):
                break
            if process.poll() is not None or time.monotonic() > until:
                raise ConfigError(f"redis-server did not start: {(folder / 'log').read_text()[-500:]}")
            time.sleep(0.02)
        yield f"redis://127.0.0.1:{port}/0"
    finally:
        process.terminate()
        process.wait()
