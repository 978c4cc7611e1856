"""`tailrace store backup` and `restore`: the files of a data directory as they were at one moment, elsewhere and back.

A backup is a folder: the databases, the node's name, and a list of them that is written last, so that a copy which was
broken off is none.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from .. import __version__
from ..foundation import terminal
from ..foundation.clock import SYSTEM_CLOCK
from ..foundation.run_dir import places
from ..model.errors import ConfigError, StoreFull
from ..stores import node_id
from ..stores.control.sqlite_restored import end_in_copy
from ..stores.data_dir import DataDir
from ..stores.restored import STAMP
from ..stores.sqlite.backup import copy, fault_of, sizes, snapshots, sync

#: The database of tokens, as `assembly/embedded.py` names it.
STATE_FILE = "state.db"
#: The file that says that a folder is a backup, and of which files.
LIST = "backup.json"
#: The version of its format.
FORMAT = 1
NOTHING_MORE: Mapping[str, list[str]] = {}


def back_up(target: Path, data: Path, as_json: bool) -> None:
    """Copies the databases in `data` to a new folder, whether a node runs there or not."""
    files = databases(data)
    if not files:
        raise ConfigError(f"{data} has no databases: name the data directory of a node with --data")
    _refuse_full(target)
    with _making(target) as made, snapshots(files) as seen:
        target.mkdir(mode=0o700, parents=True, exist_ok=True)
        taken_at = SYSTEM_CLOCK.wall()
        total = sizes(seen)
        with terminal.progress(f"Copying {len(files)} files", total) as advance:
            for file, reader in seen.items():
                made.append(target / file.name)
                copy(reader, target / file.name, advance)
        if (data / node_id.NAME).exists():
            made.append(target / node_id.NAME)
            _copy(data / node_id.NAME, target / node_id.NAME, lambda count: None)
        names = {file.name: (target / file.name).stat().st_size for file in files}
        listed = {"format": FORMAT, "tailrace": __version__, "taken_at": taken_at, "files": names}
        made.append(beside := target / f"{LIST}.new")
        beside.write_text(json.dumps(listed, indent=1) + "\n")
        sync(beside)
        beside.replace(target / LIST)
        sync(target)
    _tell(as_json, target, names, f"{data}, as it was at {terminal.moment(taken_at)}, is in {target}")


def put_back(backup: Path, data: Path, as_json: bool, keep_tokens: bool = False) -> None:
    """Copies a backup to a data directory that has no databases and that nobody uses meanwhile. Tokens that may have
    been revoked since do not come back, unless they are to be kept."""
    names, taken_at = _listed(backup)
    ended: list[str] = []
    kept: list[str] = []
    with DataDir(data):
        left = [each.name for each in [*databases(data), *data.glob("*.db-wal"), *data.glob("*.db-shm")]]
        if left:
            raise ConfigError(
                f"{data} is not empty ({', '.join(sorted(left))}): move these files away first, or choose another "
                "--data. Nothing was changed"
            )
        with terminal.progress("Looking at the backup", len(names)) as advance:
            for name in names:
                if wrong := fault_of(backup / name):
                    raise ConfigError(f"{backup / name} is damaged ({wrong}): take another backup. Nothing was changed")
                advance(1)
        title = f"Copying {len(names)} files"
        with _making(data) as made, terminal.progress(title, sum(names.values())) as advance:
            for beside in (STAMP, node_id.NAME):
                (data / beside).unlink(missing_ok=True)
            for name in [*names, *([node_id.NAME] if (backup / node_id.NAME).exists() else [])]:
                made.append(data / name)
                _copy(backup / name, data / name, advance)
            if STATE_FILE in names:
                state, now = data / STATE_FILE, SYSTEM_CLOCK.wall()
                ended, kept = end_in_copy(state, taken_at, places()[0], now, keep=keep_tokens)
            sync(data)
    said = "the first run hands nothing out for the lease of a source, since items handed out later may still run"
    _tell(as_json, data, names, f"{backup} is in {data}; {said}", {"tokens_ended": ended, "tokens_kept": kept})
    if ended:
        terminal.complain(
            f"tokens of the backup that ended, since they were revoked after it was taken, or may have been: "
            f"{', '.join(ended)}; `tailrace auth token create` makes others, and --keep-tokens keeps them all"
        )
    elif kept and keep_tokens:
        terminal.complain(
            f"tokens of the backup that hold again, also those that were revoked after it was taken: {', '.join(kept)}"
        )


def databases(data: Path) -> list[Path]:
    """The databases of a data directory, in the order of their names."""
    return sorted(data.glob("*.db"))


def _refuse_full(target: Path) -> None:
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise ConfigError(f"{target} is there already and not an empty folder: name a new one for the backup")


def _listed(backup: Path) -> tuple[dict[str, int], float]:
    """The files of a backup and their sizes, and when it was taken. Raises ConfigError for a folder that is none."""
    try:
        found: Any = json.loads((backup / LIST).read_text())
        taken_at = float(found["taken_at"])
        known, names = found["format"], {str(name): int(size) for name, size in found["files"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise ConfigError(
            f"{backup} is no backup: expected a folder with a {LIST}, as `tailrace store backup` makes it (one that "
            "was broken off has none)"
        ) from None
    if known != FORMAT:
        raise ConfigError(f"{backup} was made by another version of tailrace: use that one to restore it")
    for name, size in names.items():
        file = backup / name
        if name != Path(name).name or not file.is_file() or file.stat().st_size != size:
            raise ConfigError(f"{file} is missing or not as long as {LIST} says: take another backup")
    return names, taken_at


def _copy(source: Path, target: Path, advance: Callable[[int], None]) -> None:
    with source.open("rb") as reading, target.open("xb") as writing:
        os.fchmod(writing.fileno(), 0o600)
        while block := reading.read(1 << 22):
            writing.write(block)
            advance(len(block))
        writing.flush()
        os.fsync(writing.fileno())


@contextlib.contextmanager
def _making(folder: Path) -> Iterator[list[Path]]:
    """Removes the files that were begun when the work inside fails; tells errors of the operating system in words."""
    made: list[Path] = []
    try:
        yield made
    except BaseException as error:
        for each in made:
            for path in (each, each.with_name(f"{each.name}-journal")):
                path.unlink(missing_ok=True)
        if isinstance(error, OSError):
            full = error.errno in (errno.ENOSPC, errno.EDQUOT)
            told = f"{folder}: {error.strerror}. Nothing was kept. "
            kind = StoreFull if full else ConfigError
            raise kind(told + ("Free some space" if full else "Choose another folder")) from None
        raise


def _tell(
    as_json: bool, folder: Path, names: dict[str, int], text: str, more: Mapping[str, list[str]] = NOTHING_MORE
) -> None:
    if as_json:
        terminal.show_json({"folder": str(folder), "files": names, **more})
    else:
        terminal.say(f"{text} ({len(names)} files, {sum(names.values()) / 1e6:.1f} MB)")
