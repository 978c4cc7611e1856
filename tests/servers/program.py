"""A server's own program as a process: started on loopback, killed without warning, started again with its data."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

#: Seconds that a server may take to answer.
START_WITHIN = 30.0


class Program:
    """A server's program. `command` starts the server (as `user`, and in `folder`, when named), `answers` says whether
    it does; its output goes to `log`."""

    def __init__(
        self,
        command: Sequence[str],
        answers: Callable[[], bool],
        log: Path,
        *,
        user: str | None = None,
        folder: str | None = None,
    ) -> None:
        self._command = list(command)
        self._answers = answers
        self._log = log
        self._user = user
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Starts it, or starts it again, and waits until it answers."""
        with self._log.open("ab") as output:
            self._process = subprocess.Popen(
                self._command, stdout=output, stderr=subprocess.STDOUT, user=self._user, cwd=self._folder
            )
        until = time.monotonic() + START_WITHIN
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > until:
                self.kill()
                tail = self._log.read_text(errors="replace")[-2000:]
                raise RuntimeError(f"{self._command[0]} did not start:\n{tail}")
            time.sleep(0.01)

    @property
    def pid(self) -> int:
        """The process id while it runs."""
        assert self._process is not None
        return self._process.pid

    def kill(self) -> None:
        """Kills the program with SIGKILL: all that it had not made durable is gone."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """Ends it in good order."""
        self._end(signal.SIGTERM)

    def freeze(self) -> None:
        """Stops the program with SIGSTOP: connections stay, nothing answers, until `thaw`."""
        if self._process is not None:
            self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Lets the program go on, with SIGCONT."""
        if self._process is not None:
            self._process.send_signal(signal.SIGCONT)

    def _end(self, number: int) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(number)
            process.send_signal(signal.SIGCONT)
            process.wait(timeout=30)
