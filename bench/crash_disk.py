"""A disk whose state after a power cut can be looked at: an ext4 file system in an image file of its own. Bytes
that were only written rest in the page cache above it; bytes that were synced, or written back since, are in the image.
So a copy of the image holds what a machine would find after losing its power in that moment.

It needs Linux, root, and loop devices. Bytes that the kernel wrote back by itself count as kept, which a disk with a
cache of its own need not do.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from ..model.errors import ConfigError

#: Bytes of the image, which is sparse.
SIZE = 1 << 30
#: Copies that are made until one was not disturbed.
COPIES = 20


class CrashDisk:
    """A disk whose image is what a power cut would leave, mounted at `path`. Raises ConfigError where that is not
    possible."""

    def __init__(self, image: Path, path: Path) -> None:
        self.image = image
        self.path = path

    def make(self) -> None:
        """Makes an empty disk."""
        self.image.parent.mkdir(parents=True, exist_ok=True)
        with self.image.open("wb") as file:
            file.truncate(SIZE)
        _run("mkfs.ext4", "-q", "-F", str(self.image))

    def mount(self) -> None:
        """Mounts the disk; its journal repairs what a cut left unfinished, as at a machine's start."""
        self.path.mkdir(parents=True, exist_ok=True)
        _run("mount", "-o", "loop", str(self.image), str(self.path))

    def sync(self) -> None:
        """Writes everything so far to the disk."""
        _run("sync", "--file-system", str(self.path))

    def cut(self, image: Path, path: Path) -> CrashDisk:
        """A copy of the disk as it would be found after a power cut now. Its writers should be stopped. The kernel may
        still write, so the image is copied again until nothing was written meanwhile: half of a write back is no state
        of a disk."""
        for _ in range(COPIES):
            before = self.image.stat().st_mtime_ns
            _run("cp", "--sparse=always", str(self.image), str(image))
            if self.image.stat().st_mtime_ns == before:
                return CrashDisk(image, path)
        raise ConfigError(f"{self.image} was written to during each of {COPIES} copies: is the machine overloaded?")

    def unmount(self) -> None:
        """Unmounts the disk."""
        _run("umount", str(self.path))


def _run(command: str, *arguments: str) -> None:
    program = shutil.which(command)
    if program is None:
        raise ConfigError(f"there is no {command} here: this scenario needs Linux, root and loop devices")
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        why = done.stderr.strip() or "it failed"
        raise ConfigError(f"{command}: {why}: this scenario needs Linux, root and loop devices")
