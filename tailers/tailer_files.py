"""Files of tailers as they are named: a file itself, or a folder with one for each tailer, listed anew at each look."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..model.errors import ConfigError

#: The names of such files in a folder. Hidden ones are what editors and the kubelet keep beside them.
PATTERN = "*.y*ml"


def is_one(path: Path) -> bool:
    """Whether an entry of a folder is the file of a tailer, by its name."""
    return path.match(PATTERN) and not path.name.startswith(".")


def listed(folder: Path) -> list[Path]:
    """The files in a folder, sorted by name. Raises ConfigError where they cannot be known."""
    try:  # a glob would find none in a folder that may not be listed
        return sorted(path for path in folder.iterdir() if is_one(path))
    except OSError as error:
        raise unreadable(folder, error) from None


def files_of(paths: Sequence[Path]) -> list[Path]:
    """The files that these are, and those in the folders among them. Raises ConfigError for what is not there."""
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
    """What to raise for a folder that may not be listed, or in which nothing may be looked at."""
    return ConfigError(f"{path}: cannot be read: {error.strerror}; let this user list it, and read the files in it")
