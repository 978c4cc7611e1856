"""Listing of a folder's files: names relative to it, each with a version that changes when the file does."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from fnmatch import translate
from pathlib import Path

from ...foundation.folder import SkippedEntry, Walk
from ...stores.inventory.inventory import InventoryEntry

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
    root: Path,
    patterns: Patterns,
    recursive: bool,
    follow: bool,
    birth: str = "",
    moves: Callable[[str], None] = lambda doing: None,
) -> Listing:
    """Every wanted regular file under `root`. Files and folders behind links are listed only with `follow`, and no
    folder that is among its own parents. `moves` is called with the name that is looked at. Raises OSError when `root`
    itself cannot be read, or is not the folder with that `birth`."""
    listing = Listing()
    walk = Walk(follow, patterns.wanted, lambda name: recursive and patterns.enter(name), moves, birth)
    for found in walk.files(root):
        if isinstance(found, SkippedEntry):
            listing.skip(found.name if _is_text(found.name) else ascii(found.name), found.why)
        elif _is_text(found.name):
            version = version_of(found.facts.st_size, found.facts.st_mtime_ns)
            listing.entries.append(InventoryEntry(found.name, version))
        else:
            listing.skip(ascii(found.name), "its name is not valid text")
    return listing


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
