"""Lists the files of a folder: names relative to it, each with a version that changes when the file does."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fnmatch import translate
from pathlib import Path

from ...stores.inventory.inventory import Entry


@dataclass(slots=True)
class Listing:
    """`skipped` says what was not entered or could not be read, and why."""

    entries: list[Entry] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)


def version_of(size: int, modified_ns: int) -> str:
    """What tells two contents of one name apart."""
    return f"{size}-{modified_ns}"


class Patterns:
    """Which files are wanted. A pattern without a slash is matched against the last part of a name, one with a slash
    against the whole; `*` matches slashes too. All patterns of a kind are one regular expression."""

    def __init__(self, include: tuple[str, ...], exclude: tuple[str, ...]) -> None:
        self._include = _Either(include)
        self._exclude = _Either(exclude)
        # "build/*" excludes everything below build, so the folder need not be entered.
        self._below = _Either(tuple(pattern[:-2] for pattern in exclude if pattern.endswith("/*")))

    def wanted(self, name: str) -> bool:
        """Whether a file's relative name is wanted."""
        return self._include.matches(name) and not self._exclude.matches(name)

    def enter(self, name: str) -> bool:
        """Whether there may be something wanted in a folder."""
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


def list_folder(root: Path, patterns: Patterns, recursive: bool, follow: bool) -> Listing:
    """Every wanted regular file under `root`. Linked folders are entered only with `follow`, and never one that is
    among its own parents. Raises OSError when `root` itself cannot be read."""
    listing = Listing()
    top = root.stat()
    _list(str(root), "", ((top.st_dev, top.st_ino),), _Rules(patterns, recursive, follow), listing)
    return listing


@dataclass(frozen=True, slots=True)
class _Rules:
    patterns: Patterns
    recursive: bool
    follow: bool


def _list(folder: str, prefix: str, parents: tuple[tuple[int, int], ...], rules: _Rules, listing: Listing) -> None:
    for entry in _scan(folder, prefix, listing):
        name = prefix + entry.name
        try:
            name.encode()
            if entry.is_dir(follow_symlinks=False) or (entry.is_symlink() and entry.is_dir()):
                _enter(entry, name, parents, rules, listing)
            elif rules.patterns.wanted(name) and entry.is_file():
                stat = entry.stat()
                listing.entries.append(Entry(name, version_of(stat.st_size, stat.st_mtime_ns)))
        except UnicodeEncodeError:
            listing.skipped[ascii(name)] = "its name is not valid text"
        except FileNotFoundError:
            continue  # it vanished while the folder was listed
        except OSError as error:
            listing.skipped[name] = error.strerror or str(error)


def _scan(folder: str, prefix: str, listing: Listing) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as found:
            yield from sorted(found, key=lambda entry: entry.name)
    except OSError as error:
        if not prefix:
            raise
        listing.skipped[prefix.rstrip("/")] = error.strerror or str(error)


def _enter(
    entry: os.DirEntry[str], name: str, parents: tuple[tuple[int, int], ...], rules: _Rules, listing: Listing
) -> None:
    if not rules.recursive or not rules.patterns.enter(name):
        return
    if entry.is_symlink() and not rules.follow:
        listing.skipped[name] = "a link to a folder; follow_links is off"
        return
    stat = entry.stat()
    here = (stat.st_dev, stat.st_ino)
    if here in parents:
        listing.skipped[name] = "a link to one of its own parents"
        return
    _list(entry.path, name + "/", (*parents, here), rules, listing)
