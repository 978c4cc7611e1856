"""The data directory: used by one process at a time, on a local file system, with a note of whether the last process
closed it.

SQLite's locks keep two writers apart, but report the conflict late, statement by statement. One `flock` for the whole
directory reports it at the start, names the process that holds it, and goes away with that process however it dies.
Network file systems are refused: SQLite's write-ahead log needs memory shared by all its processes, and their locks are
often not real.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from pathlib import Path
from types import TracebackType

from ..foundation.births import file_system
from ..model.errors import AlreadyInUse, ConfigError, StoreFull

#: The bits of a file's mode for the group and for everybody.
OTHERS = 0o077
LOCK_NAME = "tailrace.lock"

#: File system types that live on another machine.
NETWORK = frozenset(
    {
        *("nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "ncpfs", "coda", "ceph", "lustre", "gpfs", "beegfs", "ocfs2"),
        "9p",
        *("glusterfs", "davfs", "fuse.sshfs", "fuse.glusterfs", "fuse.ceph", "fuse.s3fs", "fuse.gcsfuse"),
        *("fuse.rclone", "fuse.davfs2", "fuse.juicefs"),
    }
)

_MOUNTS = Path("/proc/mounts")
_FULL = {errno.ENOSPC, errno.EDQUOT}


class DataDir:
    """A directory that this process alone uses from `open` until `close`, or until it dies.

    `unclean` is known after `open`: the previous process died without closing, so items that it handed out may still
    run. Invariant: the lock file holds the owner's pid from `open` on, and is empty after a clean `close`.
    """

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self.unclean = False
        self._lock: int | None = None

    def open(self) -> None:
        """Makes the directory where it is missing and takes it. Harmless when open.

        Raises AlreadyInUse (another process has it), ConfigError (no directory, not writable, on a network file
        system) and StoreFull.
        """
        if self._lock is not None:
            return
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            refuse_network(self.path)
            lock = os.open(self.path / LOCK_NAME, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise _explain(self.path, error) from None
        try:
            self._take(lock)
            make_private(self.path)
        except BaseException as error:
            os.close(lock)
            if isinstance(error, OSError):
                raise _explain(self.path, error) from None
            raise
        self._lock = lock

    def _take(self, lock: int) -> None:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pid = os.pread(lock, 32, 0).decode(errors="replace").strip()
            raise AlreadyInUse(
                f"data directory {self.path} is in use by process {pid or '(unknown)'}: stop that process first, "
                "or choose another --data"
            ) from None
        self.unclean = bool(os.pread(lock, 32, 0).strip())
        # Written over, then cut: at no moment is the file of a running process empty.
        text = f"{os.getpid()}\n".encode()
        os.pwrite(lock, text, 0)
        os.ftruncate(lock, len(text))
        os.fsync(lock)

    def close(self) -> None:
        """Gives the directory up and notes that this process closed it. Harmless when closed."""
        lock, self._lock = self._lock, None
        if lock is None:
            return
        try:
            os.ftruncate(lock, 0)
            os.fsync(lock)
        except OSError as error:
            raise _explain(self.path, error) from None
        finally:
            os.close(lock)

    def __enter__(self) -> DataDir:
        self.open()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def make_private(path: Path) -> None:
    """Takes the rights of the group and of others from the files of a directory: a former version, or another umask,
    may have given them."""
    for file in path.iterdir():
        about = file.lstat()
        if stat.S_ISREG(about.st_mode) and about.st_mode & OTHERS and about.st_uid == os.geteuid():
            file.chmod(stat.S_IMODE(about.st_mode) & ~OTHERS)


def refuse_network(path: Path, mounts: Path = _MOUNTS) -> None:
    """Raises ConfigError when the directory is on a network file system. Accepts it where the system does not tell."""
    try:
        text = mounts.read_text(errors="surrogateescape")
    except OSError:
        return
    kind = file_system(path.resolve(), text)
    if kind in NETWORK:
        raise ConfigError(
            f"data directory {path} is on a network file system ({kind}), where SQLite cannot keep its promises: "
            "choose a --data on a local disk"
        )


def _explain(path: Path, error: OSError) -> Exception:
    """The error to raise for a failure with the directory: the cause, and what to do."""
    if error.errno in _FULL:
        return StoreFull(f"data directory {path}: {error.strerror}. Free some space, or choose another --data")
    if error.errno in (errno.EEXIST, errno.ENOTDIR):
        return ConfigError(f"data directory {path} is not a directory: choose another --data")
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return ConfigError(
            f"data directory {path} cannot be written by this user ({error.strerror}): "
            "change its permissions, or choose another --data"
        )
    return ConfigError(f"data directory {path} cannot be used: {error.strerror}; choose another --data")
