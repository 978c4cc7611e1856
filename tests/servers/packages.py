"""Installs a server's package where we may: root on Debian. No system service is started for it."""

from __future__ import annotations

import contextlib
import fcntl
import glob
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

#: The program that Debian asks before it starts a service; 101 says no.
_POLICY = Path("/usr/sbin/policy-rc.d")


def searched(folders: str) -> str:
    """A search path: the usual one, then the folders of a pattern, newest version first."""
    return os.pathsep.join([os.environ.get("PATH", os.defpath), *sorted(glob.glob(folders), reverse=True)])  # noqa: PTH207


def install(program: str, package: str, folders: str = "") -> str:
    """Installs the package unless its program is there, on the path or in the folders of a pattern; returns why it
    could not, empty when it is there now."""

    def there() -> bool:
        return shutil.which(program, path=searched(folders)) is not None

    if there():
        return ""
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        return f"{program} is not installed"
    lock = os.open(Path(tempfile.gettempdir()) / "tailrace-test-packages.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)  # one process of pytest installs, the others wait for it
        if there():
            return ""
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
        command = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", package]
        with _no_service():
            done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
            if done.returncode:
                subprocess.run(["apt-get", "update", "-qq"], env=environment, capture_output=True, check=False)
                done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        return "" if there() else f"apt-get could not install {package}: {done.stderr.strip()[-300:]}"
    finally:
        os.close(lock)


@contextlib.contextmanager
def _no_service() -> Iterator[None]:
    if _POLICY.exists():
        yield
        return
    _POLICY.write_text("#!/bin/sh\nexit 101\n")
    _POLICY.chmod(0o755)
    try:
        yield
    finally:
        _POLICY.unlink(missing_ok=True)
