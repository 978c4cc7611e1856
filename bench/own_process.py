"""A process of our own that is killed and started again: what a broker and a server of a run have in common."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

#: Seconds until one that is asked to end has ended.
STOP_WITHIN = 30.0


class OwnProcess:
    """None at first; `user` is whose process it is, None: ours."""

    user: str | None = None

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def running(self) -> bool:
        """Whether it lives."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        """Of its first process."""
        assert self._process is not None
        return self._process.pid

    def begin(self, command: Sequence[str], folder: Path, log: Path) -> None:
        """Starts it in a folder; what it says goes to the end of a log."""
        with log.open("ab") as out:
            self._process = subprocess.Popen(command, cwd=folder, stdout=out, stderr=out, user=self.user)

    def kill(self) -> None:
        """SIGKILL. What it had written to files is kept, page cache and all, so this says nothing of power cuts.
        Harmless when it is dead."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(STOP_WITHIN)

    def stop(self) -> None:
        """An orderly end. Harmless when it is dead."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(STOP_WITHIN)
        except subprocess.TimeoutExpired:
            self.kill()
