"""A Redis for the scenarios: a server that TAILRACE_BENCH_REDIS names, else redis-server on loopback for one run."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from ..model.errors import ConfigError
from .server_node import ServerNode, running

VARIABLE = "TAILRACE_BENCH_REDIS"
#: Settings with which every write is on disk before it is answered, as a delay service needs it.
DURABLE = ("--appendonly", "yes", "--appendfsync", "always", "--save", "")


class RedisNode(ServerNode):
    """A redis-server with these settings. Raises ConfigError where there is none."""

    name = "redis-server"

    def __init__(self, folder: Path, settings: Sequence[str] = DURABLE) -> None:
        super().__init__(folder)
        program = shutil.which("redis-server")
        if program is None:
            raise ConfigError(
                f"redis-server is not installed: install it, or name a server in {VARIABLE} (redis://HOST:PORT/0)"
            )
        self._program, self._settings = program, settings
        folder.mkdir(parents=True, exist_ok=True)

    @property
    def url(self) -> str:
        return f"redis://{self.address}/0"

    def command(self) -> Sequence[str]:
        here = ("--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.folder))
        return (self._program, *here, *self._settings)

    def mend(self) -> bool:
        """Cuts zeros off the end of the append-only file: a file system may keep the length of a write and not its
        bytes, and then the server does not start. False: it could not."""
        program = shutil.which("redis-check-aof")
        manifests = [*self.folder.glob("appendonlydir/*.manifest")]
        if program is None or not manifests:
            return False
        command = [program, "--fix", str(manifests[0])]
        return not subprocess.run(command, input=b"y\n", capture_output=True, check=False).returncode


@contextlib.contextmanager
def redis_server(folder: Path, settings: Sequence[str] = DURABLE) -> Iterator[str]:
    """The URL of a server; one of our own has its data in `folder`, and these settings. Raises ConfigError where there
    is none."""
    if address := os.environ.get(VARIABLE, ""):
        yield address
        return
    with running(partial(RedisNode, settings=settings), folder) as node:
        yield node.url
