"""A file system of its own for the data of a run, which can be filled without writing a byte: a tmpfs whose size is set
to what is in it. Only root may mount one; elsewhere the faults of that kind are left out, and the report says so.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

_SIZE = 2 << 30


class SmallDisk:
    """A small disk, mounted at `path`. Invariant: it is unmounted again, and its files are kept in the folder under
    it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.mounted = False

    def mount(self) -> str:
        """Mounts the disk. Returns the reason why it cannot; empty: done."""
        self.path.mkdir(parents=True, exist_ok=True)
        if sys.platform != "linux" or os.geteuid():
            return "a disk that can be filled needs Linux and root"
        why = _run("mount", "-t", "tmpfs", "-o", f"size={_SIZE}", "tailrace-bench", str(self.path))
        self.mounted = not why
        return why

    def fill(self) -> None:
        """Leaves no room, but for a few pages: the size may not be below the used space, which grows meanwhile."""
        why = ""
        for pages in (4, 16, 64, 256, 1024):
            state = os.statvfs(self.path)
            used = state.f_blocks - state.f_bfree
            why = self._resize((used + pages) * state.f_frsize)
            if not why:
                return
        raise OSError(why)

    def make_room(self) -> None:
        """Gives the disk room again."""
        if why := self._resize(_SIZE):
            raise OSError(why)

    def _resize(self, size: int) -> str:
        return _run("mount", "-o", f"remount,size={size}", str(self.path))

    def unmount(self) -> None:
        """Keeps the files and unmounts. Harmless when it is not mounted."""
        if not self.mounted:
            return
        kept = self.path.with_name(f"{self.path.name}.kept")
        shutil.copytree(self.path, kept, dirs_exist_ok=True)
        if _run("umount", str(self.path)):
            _run("umount", "-l", str(self.path))
        self.mounted = False
        with contextlib.suppress(OSError):
            self.path.rmdir()
            kept.rename(self.path)


def _run(command: str, *arguments: str) -> str:
    """Runs a command of the system. Returns the reason why it failed; empty: it did not."""
    path = shutil.which(command)
    if path is None:
        return f"there is no {command} here"
    done = subprocess.run([path, *arguments], capture_output=True, text=True, check=False)
    return done.stderr.strip() or f"{command} failed" if done.returncode else ""
