"""The run directory of a user: what the parts, the commands and the clients of one user find each other by.

It is `$TAILRACE_RUN_DIR`, else `$XDG_RUNTIME_DIR/tailrace`, else `tailrace-UID` in the temporary folder: of mode 0700,
and nobody else's, which is looked at without following links. In it is a card (0600) with one random secret, made by
whichever part comes first and kept. With a `group` (access.yaml) that group may read both: for operators who are not
the user that runs the platform, and choose the directory by TAILRACE_RUN_DIR. Beside it are notices (`notices.py`).
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
    """The card of a run directory. `owner` is the uid of who has it."""

    directory: Path
    owner: int
    secret: str


def places(environment: Mapping[str, str] | None = None) -> list[Path]:
    """Where a run directory may be: the one that is chosen, else the usual ones, the first one first. A service has
    often no XDG_RUNTIME_DIR where the same user's shell has one, so whoever looks for a card looks in each."""
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
    """A user by name, or by number."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid {uid}"


# Those who run the platform.


class RunDir:
    """The run directory of this process' user, made where it is missing. While it is open a lock keeps those who clean
    temporary folders from it. `open` raises ConfigError where somebody else has it, or it cannot be written."""

    def __init__(self, path: Path | None = None, group: str = "") -> None:
        self.path = places()[0] if path is None else path
        self.group = group
        self._group_id = _group_id(group)
        self.folder = -1  # its descriptor while it is open

    def open(self, secret: str = "") -> Card:
        """The card, made where it is missing, with this secret (empty: a new one)."""
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
            raise ConfigError(f"{self.path / CARD} is not a card of tailrace, or somebody else's; {_WHAT_TO_DO}")
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
        """Gives a file of the directory, or itself, the mode and the group that it is to have."""
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
        """A card appears whole or not at all; of two that are made at once one stays."""
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


# Those who look for a card.


def cards(environment: Mapping[str, str] | None = None) -> Iterator[Card]:
    """The cards that this process may read, in the order of `places`."""
    for path, folder in directories(environment):
        with contextlib.suppress(OSError):
            if (card := _read(path, folder)) is not None:
                yield card


def directories(environment: Mapping[str, str] | None = None) -> Iterator[tuple[Path, int]]:
    """The run directories that this process may read, in the order of `places`, each open until the next one. In a
    usual place only the user's own counts, else somebody could lay out one of theirs; one that was chosen may be
    another user's, whom one can tell."""
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
    """A file in an open directory, open; None: there is none, or it is none of the directory's owner."""
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
    """The uid by which this process sees every user whom its user namespace does not know (Linux), so that it says of
    nobody who that is; None: all are known."""
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
