"""A process of our own that is killed and started again: the base of a run's brokers and servers."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

#: Seconds in which a process that is asked to end must have ended.
STOP_WITHIN = 30.0


class OwnProcess:
    """A process that `begin` starts. `user` is the user that it runs as; None: ours."""

    user: str | None = None

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def running(self) -> bool:
        """Whether the process lives."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        """Id of its first process."""
        assert self._process is not None
        return self._process.pid

    def begin(self, command: Sequence[str], folder: Path, log: Path) -> None:
        """Starts the process in a folder; its output goes to the end of a log."""
        with log.open("ab") as out:
            self._process = subprocess.Popen(command, cwd=folder, stdout=out, stderr=out, user=self.user)

    def kill(self) -> None:
        """Sends SIGKILL. Bytes that it had written to files are kept, page cache and all, so this says nothing of power
        cuts. Harmless when it is dead."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(STOP_WITHIN)

    def stop(self) -> None:
        """Ends the process in order. Harmless when it is dead."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(STOP_WITHIN)
        except subprocess.TimeoutExpired:
            self.kill()
