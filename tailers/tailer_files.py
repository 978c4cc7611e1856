"""Tailer files: a path names one file, or a folder with a file for each tailer, which is listed anew each time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..model.errors import ConfigError

#: The names of tailer files in a folder. Hidden files are left out: editors and the kubelet keep theirs there.
PATTERN = "*.y*ml"


def is_tailer_file(path: Path) -> bool:
    """Whether an entry of a folder is a tailer file, by its name."""
    return path.match(PATTERN) and not path.name.startswith(".")


def listed(folder: Path) -> list[Path]:
    """The tailer files in a folder, sorted by name. Raises ConfigError when the folder cannot be listed."""
    try:  # a glob would find none in a folder that may not be listed
        return sorted(path for path in folder.iterdir() if is_tailer_file(path))
    except OSError as error:
        raise unreadable(folder, error) from None


def files_of(paths: Sequence[Path]) -> list[Path]:
    """The files among these paths, and the tailer files in the folders among them. Raises ConfigError for a path that
    does not exist or cannot be read."""
    found: list[Path] = []
    for path in paths:
        try:
            found += listed(path) if path.is_dir() else [path]
            path.stat()
        except (FileNotFoundError, ValueError):  # a zero byte in the path
            raise ConfigError(
                f"{path}: no such file or folder; name the file of a tailer, or a folder with such files"
            ) from None
        except OSError as error:
            raise unreadable(path, error) from None
    return found


def unreadable(path: Path, error: OSError) -> ConfigError:
    """The error for a file or folder that this user may not read or list."""
    return ConfigError(f"{path}: cannot be read: {error.strerror}; let this user list it, and read the files in it")
