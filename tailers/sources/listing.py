"""Listing of a folder's files: names relative to it, each with a version that changes when the file does."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable
from dataclasses import dataclass, field
from fnmatch import translate
from pathlib import Path

from ...stores.inventory.inventory import InventoryEntry
from .folder import kind_of, open_folder

#: The most folders inside each other that are listed: each is open meanwhile.
DEEPEST = 100
#: The most names of skipped entries that a listing keeps.
MOST_SKIPPED = 1000


@dataclass(slots=True)
class Listing:
    """The files found. `skipped` has the names that were not entered or could not be read, each with the reason."""

    entries: list[InventoryEntry] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)

    def skip(self, name: str, why: str) -> None:
        """Notes a name that was not entered or read; the first thousand are kept."""
        if len(self.skipped) < MOST_SKIPPED:
            self.skipped[name] = why


def version_of(size: int, modified_ns: int) -> str:
    """The version of a file, which tells two contents of one name apart."""
    return f"{size}-{modified_ns}"


class Patterns:
    """Patterns of wanted files. A pattern without a slash is matched against the last part of a name, one
    with a slash against the whole; `*` matches slashes too. All patterns of a kind are one regular expression."""

    def __init__(self, include: tuple[str, ...], exclude: tuple[str, ...]) -> None:
        self._include = _Either(include)
        self._exclude = _Either(exclude)
        # "build/*" excludes everything below build, so the folder need not be entered.
        self._below = _Either(tuple(pattern[:-2] for pattern in exclude if pattern.endswith("/*")))

    def wanted(self, name: str) -> bool:
        """Whether a file's relative name is wanted."""
        return self._include.matches(name) and not self._exclude.matches(name)

    def enter(self, name: str) -> bool:
        """Whether a folder may have wanted files in it."""
        return not self._below.whole(name)


class _Either:
    def __init__(self, patterns: tuple[str, ...]) -> None:
        self._long = _compiled([pattern for pattern in patterns if "/" in pattern])
        self._short = _compiled([pattern for pattern in patterns if "/" not in pattern])
        self._all = _compiled(list(patterns))

    def matches(self, name: str) -> bool:
        last = name.rpartition("/")[2]
        return bool((self._short and self._short(last)) or (self._long and self._long(name)))

    def whole(self, name: str) -> bool:
        return bool(self._all and self._all(name))


def _compiled(patterns: list[str]) -> Callable[[str], re.Match[str] | None] | None:
    return re.compile("|".join(translate(pattern) for pattern in patterns)).match if patterns else None


def list_folder(
    root: Path, patterns: Patterns, recursive: bool, follow: bool, moves: Callable[[str], None] = lambda doing: None
) -> Listing:
    """Every wanted regular file under `root`. Files and folders behind links are listed only with `follow`, and no
    folder that is among its own parents. `moves` is called with the name that is looked at. Raises OSError when `root`
    itself cannot be read."""
    listing = Listing()
    moves(f"listing {root}")
    descriptor = open_folder(root, follow=True)
    try:
        rules = _Rules(patterns, recursive, follow, moves)
        _list(descriptor, "", (_identity(os.fstat(descriptor)),), rules, listing)
    finally:
        os.close(descriptor)
    return listing


@dataclass(frozen=True, slots=True)
class _Rules:
    patterns: Patterns
    recursive: bool
    follow: bool
    moves: Callable[[str], None]


def _identity(found: os.stat_result) -> tuple[int, int]:
    return found.st_dev, found.st_ino


def _list(folder: int, prefix: str, parents: tuple[tuple[int, int], ...], rules: _Rules, listing: Listing) -> None:
    for entry in _scan(folder, prefix, listing):
        name = prefix + entry.name
        try:
            name.encode()
            if entry.is_dir(follow_symlinks=False) or (entry.is_symlink() and _is_dir(entry, rules)):
                _enter(folder, entry, name, parents, rules, listing)
            elif rules.patterns.wanted(name):
                found = entry.stat(follow_symlinks=rules.follow)
                if stat.S_ISREG(found.st_mode):
                    listing.entries.append(InventoryEntry(name, version_of(found.st_size, found.st_mtime_ns)))
                else:
                    listing.skip(name, kind_of(found.st_mode))
        except UnicodeEncodeError:
            listing.skip(ascii(name), "its name is not valid text")
        except FileNotFoundError:
            continue  # it vanished while the folder was listed, or is a link to nothing
        except OSError as error:
            listing.skip(name, error.strerror or str(error))


def _is_dir(link: os.DirEntry[str], rules: _Rules) -> bool:
    """Whether a link may be entered as a folder. The target of a link that is not followed is not looked at."""
    return rules.follow and link.is_dir()


def _scan(folder: int, prefix: str, listing: Listing) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as found:
            return sorted(found, key=lambda entry: entry.name)
    except OSError as error:
        if not prefix:
            raise
        listing.skip(prefix.rstrip("/"), error.strerror or str(error))
        return []


def _enter(
    within: int,
    entry: os.DirEntry[str],
    name: str,
    parents: tuple[tuple[int, int], ...],
    rules: _Rules,
    listing: Listing,
) -> None:
    if not rules.recursive or not rules.patterns.enter(name):
        return
    if len(parents) > DEEPEST:
        listing.skip(name, f"it is more than {DEEPEST} folders deep")
        return
    rules.moves(f"listing {name}")
    descriptor = open_folder(entry.name, follow=rules.follow, within=within)
    try:
        here = _identity(os.fstat(descriptor))
        if here in parents:
            listing.skip(name, "a link to one of its own parents")
            return
        _list(descriptor, name + "/", (*parents, here), rules, listing)
    finally:
        os.close(descriptor)
