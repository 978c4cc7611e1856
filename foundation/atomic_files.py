"""Puts files that belong together into a folder: none takes its place before all are written, so that a full disk
changes nothing."""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from ..model.errors import ConfigError


class NewFile(NamedTuple):
    """The content that a file is to have, and its mode from its first byte on."""

    content: bytes
    mode: int


def put(folder: Path, files: Mapping[str, NewFile]) -> None:
    """Puts files into a folder, each whole, replacing those that are there, in this order. Raises ConfigError."""
    beside: dict[str, Path] = {}
    with told(folder):
        try:
            for name, new in files.items():
                beside[name] = _beside(folder, name)
                _write(beside[name], new)
            for name, path in beside.items():
                path.replace(folder / name)
        finally:
            _take_away(beside.values())


def put_once(folder: Path, name: str, new: NewFile) -> bool:
    """Puts a file there unless there is one. True: it did. Raises ConfigError."""
    beside = _beside(folder, name)
    with told(folder):
        try:
            _write(beside, new)
            os.link(beside, folder / name)
        except FileExistsError:
            return False
        finally:
            _take_away([beside])
    return True


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Holds the lock of this file; others who ask for it wait."""
    with told(path), path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def told(at: Path) -> Iterator[None]:
    """Raises ConfigError in place of an error of the operating system, with its file."""
    try:
        yield
    except OSError as error:
        raise ConfigError(f"{error.filename or at}: {error.strerror or error}") from None


def _beside(folder: Path, name: str) -> Path:
    return folder / f".{name}.{secrets.token_hex(8)}"


def _write(path: Path, new: NewFile) -> None:
    made = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, new.mode)
    with os.fdopen(made, "wb") as file:
        file.write(new.content)
        file.flush()
        os.fsync(made)
    path.chmod(new.mode)  # the umask may have taken bits away


def _take_away(paths: Iterable[Path]) -> None:
    for path in paths:
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)
