"""Notices: the addresses of one user's gateways and schedulers, each written by itself in the run directory.

A notice is a small file beside the card (0600, for the `group` 0640), held by a lock (flock) of the process that
listens. The kernel releases the lock however that process ends: a notice that nobody holds was left behind, counts for
nothing, and is removed by the next process of its user that looks. It is read as the card is: without following links,
and only if the directory's owner wrote it. On a file system without such locks there are no notices.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..model.address import parse_address
from ..model.plain_text import plain
from .run_dir import RunDir, directories, open_own

#: The most bytes of a notice that are read, and characters of its description of its platform.
NOTICE_BYTES = 4096
HOME_LENGTH = 500
#: Notices that are read of one directory, which is more platforms than a machine runs; and files that are looked at.
MOST = 256
MOST_FILES = 4096
#: A new notice may be taken for one that was left behind, until it is held; it is then made again, so many times.
TRIES = 5

_PARTS = ("gateway", "scheduler")
_NAME = re.compile(rf"({'|'.join(_PARTS)})\.[0-9a-f]{{16}}\.notice")
_ADDRESS = re.compile(r"[\w.:%\[\]-]{1,300}:[0-9]{1,5}", re.ASCII)
_NETWORK = Path("/proc/self/ns/net")


@dataclass(frozen=True, slots=True)
class Notice:
    """The address of a part, for a client of the same machine. `home` says of which platform it is: the place of the
    data that it serves."""

    part: str
    address: str
    pid: int
    home: str
    owner: int


# For the parts that listen.


class Posted:
    """The notice of one part, from `post` until `withdraw`."""

    def __init__(self, run_dir: RunDir, part: str) -> None:
        self._run_dir = run_dir
        self._part = part
        self._name = ""
        self._held = -1

    def post(self, address: str, home: str) -> None:
        """Writes the address, in an open run directory, and removes notices that were left behind there. Raises
        OSError."""
        self.withdraw()
        _all(self._run_dir.folder, _PARTS)
        facts = {"address": dialable(address), "pid": os.getpid(), "home": plain(home, HOME_LENGTH)}
        content = json.dumps({**facts, "network": _network()}).encode()
        for _ in range(TRIES):
            if self._made(content):
                return
        raise BlockingIOError(11, "somebody removes or locks files that are made in it")

    def stands(self) -> bool:
        """Whether the notice is still there: somebody may have removed it, or its directory."""
        if self._held < 0:
            return False
        try:
            there = (self._run_dir.path / self._name).lstat()
        except OSError:
            return False
        return os.path.samestat(there, os.fstat(self._held))

    def withdraw(self) -> None:
        """Removes the notice. Harmless twice."""
        held, self._held = self._held, -1
        if held >= 0:
            with contextlib.suppress(OSError):
                os.unlink(self._name, dir_fd=self._run_dir.folder)
            os.close(held)

    def _made(self, content: bytes) -> bool:
        """Makes a file, locks it, and then writes it. False: another process took it for a leftover before it was
        locked; from then on nobody removes it."""
        folder, name = self._run_dir.folder, f"{self._part}.{secrets.token_hex(8)}.notice"
        made = os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600, dir_fd=folder)
        try:
            fcntl.flock(made, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._run_dir.share(name, 0o600, 0o640)  # by its name: raises where that is gone
            os.write(made, content)
        except BaseException as error:
            with contextlib.suppress(OSError):
                os.unlink(name, dir_fd=folder)
            os.close(made)
            if isinstance(error, BlockingIOError | FileNotFoundError):
                return False
            raise
        self._name, self._held = name, made
        return True


def dialable(address: str) -> str:
    """The address that a client of this machine dials to reach a listener: loopback, where it listens on all
    addresses."""
    host, port = parse_address(address, lowest_port=0)
    return {"0.0.0.0": "127.0.0.1", "[::]": "[::1]"}.get(host, host) + f":{port}"  # noqa: S104 - it is told, not bound


def _network() -> int:
    """Number of the network namespace of this process: containers have their own. 0: the system does not say."""
    try:
        return _NETWORK.stat().st_ino
    except OSError:
        return 0


# For those who look for them.


def notices(part: str, environment: Mapping[str, str] | None = None) -> list[Notice]:
    """The notices of running processes of that part, in the run directories that this process may read and its own
    network; by address. Notices that were left behind there are removed."""
    found: dict[str, Notice] = {}
    network = _network()
    for _, folder in directories(environment):
        with contextlib.suppress(OSError):
            for notice, its_network in _all(folder, (part,)):
                if not network or not its_network or network == its_network:
                    found.setdefault(notice.address, notice)
    return [found[address] for address in sorted(found)]


def _all(folder: int, parts: Sequence[str]) -> list[tuple[Notice, int]]:
    """The notices of these parts in an open directory that are held, with their networks. Others are removed."""
    found: list[tuple[Notice, int]] = []
    with os.scandir(folder) as entries:
        for count, entry in enumerate(entries):
            if count >= MOST_FILES or len(found) >= MOST:
                break
            if (named := _NAME.fullmatch(entry.name)) is not None and named[1] in parts:
                with contextlib.suppress(OSError):
                    if (notice := _read(folder, entry.name)) is not None:
                        found.append(notice)
    return found


def _read(folder: int, name: str) -> tuple[Notice, int] | None:
    if (found := open_own(folder, name)) is None:
        return None
    with os.fdopen(found, "rb") as file:
        owner = os.fstat(found).st_uid
        if not _held(found):
            if owner == os.geteuid():
                os.unlink(name, dir_fd=folder)
            return None
        return _understood(file.read(NOTICE_BYTES), name.partition(".")[0], owner)


def _held(file: int) -> bool:
    """Whether a process holds the lock of a file. Raises OSError where the file system has no locks."""
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False


def _understood(content: bytes, part: str, owner: int) -> tuple[Notice, int] | None:
    """The content of a notice; None: it is being written, or is none."""
    try:
        said = json.loads(content)
        address, pid, home, network = said["address"], said["pid"], said["home"], said["network"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    if not isinstance(address, str) or not _ADDRESS.fullmatch(address):
        return None
    if type(pid) is not int or type(network) is not int or not isinstance(home, str):
        return None
    shown = home if home.isprintable() else ascii(home)
    return Notice(part, address, pid, plain(shown, HOME_LENGTH), owner), network
