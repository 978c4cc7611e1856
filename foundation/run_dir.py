"""The run directory of a user: the folder by which the parts, the commands and the clients of one user find each other.

It is `$TAILRACE_RUN_DIR`, else `$XDG_RUNTIME_DIR/tailrace`, else `tailrace-UID` in the temporary folder: of mode 0700,
and owned by the user, which is checked without following links. In it is a card (0600): a file with one random secret,
made by the first part that starts, and kept. With a `group` (access.yaml) that group may read both: for operators who
are not the user that runs the platform, and choose the directory by TAILRACE_RUN_DIR. Beside it are notices
(`notices.py`).
"""

from __future__ import annotations

import contextlib
import fcntl
import grp
import json
import os
import pwd
import secrets
import stat
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ..model.errors import ConfigError

VARIABLE = "TAILRACE_RUN_DIR"
CARD = "card.json"
#: Characters of a secret, and the most bytes that a card is read of.
SECRET_LENGTH = 64
CARD_BYTES = 4096

#: All uids, as the first user namespace maps them, and where the one stands that is shown instead of others.
_ALL_USERS = (1 << 32) - 1
_OVERFLOW = Path("/proc/sys/kernel/overflowuid")
_WHAT_TO_DO = f"remove it, or set {VARIABLE} to a folder of your own"


@dataclass(frozen=True, slots=True)
class Card:
    """The card of a run directory: its secret, and the uid of its owner."""

    directory: Path
    owner: int
    secret: str


def places(environment: Mapping[str, str] | None = None) -> list[Path]:
    """Folders that may be the run directory: the chosen one, else the usual ones, the first one first. A service often
    has no XDG_RUNTIME_DIR where the same user's shell has one, so a client looks for a card in each."""
    environment = os.environ if environment is None else environment
    if chosen := environment.get(VARIABLE):
        return [Path(chosen)]
    found = []
    if runtime := environment.get("XDG_RUNTIME_DIR"):
        with contextlib.suppress(OSError):  # of another user after `su`, or not there
            if Path(runtime).stat().st_uid == os.geteuid():
                found.append(Path(runtime) / "tailrace")
    return [*found, Path(tempfile.gettempdir()) / f"tailrace-{os.geteuid()}"]


def user_name(uid: int) -> str:
    """A user's name, or the number where it has none."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid {uid}"


# For the parts of the platform.


class RunDir:
    """The run directory of this process' user, made where it is missing. While it is open a lock keeps programs that
    clean temporary folders away. `open` raises ConfigError where somebody else owns it, or it cannot be written."""

    def __init__(self, path: Path | None = None, group: str = "") -> None:
        self.path = places()[0] if path is None else path
        self.group = group
        self._group_id = _group_id(group)
        self.folder = -1  # its descriptor while it is open

    def open(self, secret: str = "") -> Card:
        """Opens the directory. Returns the card, made where it is missing, with this secret (empty: a new one)."""
        if self.folder < 0:
            try:
                self.folder = self._opened()
            except OSError as error:
                raise ConfigError(
                    f"the run directory {self.path} cannot be used: {error.strerror}; {_WHAT_TO_DO}"
                ) from None
        return self.restored(secret)

    def restored(self, secret: str) -> Card:
        """The card; where it is gone, it is made again with this secret (empty: a new one)."""
        try:
            if (card := _read(self.path, self.folder)) is not None:
                self.share(CARD, 0o600, 0o640)
                return card
            self._write(secret or secrets.token_hex(SECRET_LENGTH // 2))
            card = _read(self.path, self.folder)
        except OSError as error:
            raise ConfigError(f"{self.path / CARD} cannot be used: {error.strerror}; {_WHAT_TO_DO}") from None
        if card is None:
            raise ConfigError(f"{self.path / CARD} is not a card of tailrace, or another user's; {_WHAT_TO_DO}")
        return card

    def close(self) -> None:
        """Lets go of the directory; the card stays. Harmless twice."""
        folder, self.folder = self.folder, -1
        if folder >= 0:
            os.close(folder)

    def _opened(self) -> int:
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            self.path.mkdir(mode=0o700)
        try:
            folder = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except NotADirectoryError:
            raise ConfigError(f"the run directory {self.path} is a link or a file; {_WHAT_TO_DO}") from None
        try:
            owner = os.fstat(folder).st_uid
            if owner != os.geteuid():
                raise ConfigError(
                    f"the run directory {self.path} belongs to {user_name(owner)}, and this is run by "
                    f"{user_name(os.geteuid())}; {_WHAT_TO_DO}"
                )
            self.share(".", 0o700, 0o750, folder)
            fcntl.flock(folder, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            pass  # somebody cleans it just now
        except BaseException:
            os.close(folder)
            raise
        return folder

    def share(self, name: str, alone: int, shared: int, folder: int | None = None) -> None:
        """Gives a file of the directory, or the directory itself, the mode and the group that it is to have."""
        folder = self.folder if folder is None else folder
        found = os.open(name, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=folder)
        try:
            was = os.fstat(found)
            if self._group_id is not None and was.st_gid != self._group_id:
                os.fchown(found, -1, self._group_id)
            wanted = alone if self._group_id is None else shared
            if stat.S_IMODE(was.st_mode) != wanted:
                os.fchmod(found, wanted)
        except PermissionError:
            raise ConfigError(
                f"{self.path}: {user_name(os.geteuid())} is not in the group {self.group!r} of access.yaml, so it "
                "cannot share its run directory with it: add the user to the group, or leave `group` out"
            ) from None
        finally:
            os.close(found)

    def _write(self, secret: str) -> None:
        """Writes a card, which appears whole or not at all; of two that are made at once one stays."""
        name = f".{CARD}.{secrets.token_hex(8)}"
        made = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600, dir_fd=self.folder)
        try:
            with os.fdopen(made, "w") as card:
                json.dump({"secret": secret}, card)
            self.share(name, 0o600, 0o640)
            with contextlib.suppress(FileExistsError):
                os.link(name, CARD, src_dir_fd=self.folder, dst_dir_fd=self.folder, follow_symlinks=False)
        finally:
            os.unlink(name, dir_fd=self.folder)


def _group_id(group: str) -> int | None:
    if not group:
        return None
    try:
        return grp.getgrnam(group).gr_gid
    except KeyError:
        raise ConfigError(
            f"access.yaml: there is no group {group!r} on this machine; name one that `id` shows"
        ) from None


# For those who look for a card.


def cards(environment: Mapping[str, str] | None = None) -> Iterator[Card]:
    """Yields the cards that this process may read, in the order of `places`."""
    for path, folder in directories(environment):
        with contextlib.suppress(OSError):
            if (card := _read(path, folder)) is not None:
                yield card


def directories(environment: Mapping[str, str] | None = None) -> Iterator[tuple[Path, int]]:
    """Yields the run directories that this process may read, in the order of `places`, each open until the next one. In
    a usual place only the user's own counts, since another user could plant one; a chosen one may be another user's,
    who is then told."""
    chosen = bool((os.environ if environment is None else environment).get(VARIABLE))
    for path in places(environment):
        try:
            folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except OSError:
            continue
        try:
            owner = os.fstat(folder).st_uid
            if (chosen or owner == os.geteuid()) and owner != nobody_known():
                yield path, folder
        finally:
            os.close(folder)


def open_own(folder: int, name: str) -> int | None:
    """Opens a file in an open directory; None: there is none, or the directory's owner does not own it."""
    try:
        found = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    except FileNotFoundError:
        return None
    about = os.fstat(found)
    if not stat.S_ISREG(about.st_mode) or about.st_uid != os.fstat(folder).st_uid:
        os.close(found)
        return None
    return found


def nobody_known(users: Path = Path("/proc/self/uid_map"), number: Path = _OVERFLOW) -> int | None:
    """The uid that stands for every user whom this process's user namespace does not know (Linux), so that it names
    nobody; None: all are known."""
    try:
        known = sum(int(line.split()[2]) for line in users.read_text().splitlines())
        return None if known >= _ALL_USERS else int(number.read_text())
    except (OSError, ValueError, IndexError):
        return None


def _read(path: Path, folder: int) -> Card | None:
    """The card in an open directory; None: there is none."""
    if (found := open_own(folder, CARD)) is None:
        return None
    with os.fdopen(found, "rb") as card:
        try:
            secret = json.loads(card.read(CARD_BYTES))["secret"]
        except (ValueError, KeyError, TypeError):
            return None
    if not isinstance(secret, str) or len(secret) != SECRET_LENGTH or not secret.isalnum() or not secret.isascii():
        return None
    return Card(path, os.fstat(folder).st_uid, secret)
