"""The data directory: made when missing, used by one process at a time, never on a network file system."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from ..sdk.model.errors import AlreadyInUse, ConfigError

#: SQLite's locks and its shared memory do not work on these.
_NETWORK = ("nfs", "cifs", "smb", "fuse.sshfs", "9p", "afs", "ceph", "glusterfs", "lustre")


class DataDir:
    """A folder that this process alone may write. `open` takes it, `close` gives it back."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self._lock: int | None = None

    def open(self) -> None:
        """Makes and locks the folder. Raises ConfigError when it cannot be used, AlreadyInUse when it is taken."""
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        except FileExistsError:
            raise ConfigError(f"{self.path}: is a file; --data expects a folder") from None
        except OSError as error:
            raise ConfigError(f"{self.path}: cannot be made: {error.strerror}; choose another --data") from None
        kind = _file_system(self.path)
        if kind.startswith(_NETWORK):
            raise ConfigError(
                f"{self.path}: is on a network file system ({kind}), where SQLite loses data; choose a local --data"
            )
        lock = self.path / "lock"
        try:
            descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise ConfigError(f"{self.path}: cannot be written: {error.strerror}; choose another --data") from None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(descriptor, 32, 0).decode(errors="replace").strip() or "unknown"
            os.close(descriptor)
            raise AlreadyInUse(
                f"{self.path}: is in use by process {holder}. Stop it, or choose another --data"
            ) from None
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        self._lock = descriptor

    def close(self) -> None:
        """Gives the folder back. Harmless when it is not held."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def _file_system(path: Path) -> str:
    """The type of the file system a path is on; empty where the system does not say."""
    mounts = Path("/proc/mounts")
    if not mounts.exists():
        return ""
    resolved = str(path.resolve())
    best, kind = "", ""
    for line in mounts.read_text().splitlines():
        _, point, found, *_ = line.split(" ")
        point = point.replace("\\040", " ")
        if (resolved + "/").startswith(point.rstrip("/") + "/") and len(point) >= len(best):
            best, kind = point, found
    return kind
