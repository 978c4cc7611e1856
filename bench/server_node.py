"""A server of our own on loopback, that can be killed and started again with its data on disk."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from ..model.errors import ConfigError
from .own_process import STOP_WITHIN, OwnProcess
from .process import descendants, free_ports, runs

#: Seconds within which a server answers, also one that must read its log first.
START_WITHIN = 60.0
#: The text that both PostgreSQL and Redis write to their logs once they take connections.
READY = b"eady to accept connections"


class ServerNode(OwnProcess, ABC):
    """A server process of our own. `folder` holds its data and its log."""

    name = "the server"

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder
        [self.port] = free_ports(1)
        self._began = 0  # where the log of this start begins

    @property
    @abstractmethod
    def url(self) -> str:
        """URL of the server, for clients."""

    @abstractmethod
    def command(self) -> Sequence[str]:
        """Program and arguments of the server."""

    @property
    def address(self) -> str:
        """Address of the server, HOST:PORT."""
        return f"127.0.0.1:{self.port}"

    @property
    def log(self) -> Path:
        """Path of its log."""
        return self.folder / "log"

    def start(self) -> None:
        """Starts the server, or starts it again; `wait` returns when it takes connections."""
        self._began = self.log.stat().st_size if self.log.exists() else 0
        self.begin(self.command(), self.folder, self.log)

    def wait(self) -> None:
        """Waits until it takes connections. Raises ConfigError with the end of its log when it ended instead."""
        until = time.monotonic() + START_WITHIN
        while READY not in (said := self.log.read_bytes()[self._began :]):
            if not self.running or time.monotonic() > until:
                raise ConfigError(f"{self.name} did not start: {said.decode(errors='replace').strip()[-500:]}")
            time.sleep(0.02)

    def mend(self) -> bool:
        """Repairs its data as its own messages say, when it does not start after a power cut. False: there is nothing
        to do."""
        return False

    def kill(self) -> None:
        """Sends SIGKILL to it and all its processes at once. Bytes that they had written to files are kept, page cache
        and all, so this says nothing of power cuts. Harmless when it is dead."""
        if self._process is None:
            return
        family = descendants(self._process.pid) if self.running else []
        for pid in family:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait(STOP_WITHIN)
        until = time.monotonic() + STOP_WITHIN
        while any(map(runs, family)) and time.monotonic() < until:
            time.sleep(0.005)


N = TypeVar("N", bound=ServerNode)


@contextlib.contextmanager
def running(make: Callable[[Path], N], folder: Path) -> Iterator[N]:
    """A node for as long as the block lasts."""
    node = make(folder)
    node.start()
    try:
        node.wait()
        yield node
    finally:
        node.stop()
