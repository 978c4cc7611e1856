"""Priorities are named levels; lower numbers go first. Four are usual, and `TAILRACE_PRIORITIES` names others.

A level's number is its rank on the wire and in every store's index, so levels may be renamed at any time, and added
behind the last one; one that is put in or taken out between moves what waits to the neighbouring level.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

from .errors import ConfigError, InvalidRequest

#: The names of the levels, most urgent first, with commas between; a star behind one makes it that of items that name
#: none. Every part and every client of one platform is given the same.
VARIABLE = "TAILRACE_PRIORITIES"
USUAL = "interactive, user_visible, eventual*, reporting"
#: Levels that there may be: each is a lane of every function, and a look of every claim.
MOST_LEVELS = 16
#: Characters of a level's name.
LONGEST_NAME = 40


class Levels(NamedTuple):
    """The names of the levels, and the number of the one that items have which name none."""

    names: Sequence[str]
    default: int


def levels_of(text: str) -> Levels:
    """The levels that a text names. Raises ConfigError, naming the variable, for a text that names none."""
    found = [each.strip() for each in text.split(",")]
    names = [each.removesuffix("*").rstrip() for each in found]
    starred = [number for number, each in enumerate(found) if each.endswith("*")]
    for name in names:
        if not (name.isascii() and name.isidentifier() and name == name.lower() and not name.startswith("_")):
            shown = repr(name[:LONGEST_NAME])
            raise ConfigError(f"{VARIABLE} names the level {shown}: expected small letters, digits and _")
        if len(name) > LONGEST_NAME:
            raise ConfigError(f"{VARIABLE} names a level of {len(name)} characters: at most {LONGEST_NAME}")
    twice = next((name for at, name in enumerate(names) if name in names[:at]), None)
    if twice is not None:
        raise ConfigError(f"{VARIABLE} names the level {twice!r} twice: leave one out")
    if not 2 <= len(names) <= MOST_LEVELS:
        raise ConfigError(f"{VARIABLE} names {len(names)} levels: expected 2 to {MOST_LEVELS}, such as {USUAL}")
    if len(starred) != 1:
        raise ConfigError(
            f"{VARIABLE} has {len(starred)} levels with a star: put one behind the level of items that name none, as "
            f"in {USUAL}"
        )
    return Levels(names, starred[0])


class _Level(IntEnum):
    """A level: how it is called, and found by its name."""

    @property
    def label(self) -> str:
        """The name users write, such as `interactive`."""
        return self.name.lower()

    @classmethod
    def parse(cls, value: str | int | Priority) -> Priority:
        """The level of a name or a rank. Raises InvalidRequest naming the known levels."""
        try:
            return Priority(value) if isinstance(value, int) else Priority[value.upper()]
        except (KeyError, ValueError):
            known = ", ".join(level.label for level in Priority)
            raise InvalidRequest(
                f"unknown priority {_short(value)!r}: expected one of {known} ({VARIABLE} names other ones)"
            ) from None

    @classmethod
    def of_rank(cls, rank: int) -> Priority:
        """The level of a rank that was written by somebody who may have more levels: the lowest for one beyond."""
        return Priority(min(max(rank, HIGHEST), LOWEST))

    @classmethod
    def stored(cls, label: str) -> Priority:
        """The level of a name that was written by somebody who may have other levels: the default for one of those."""
        return Priority.__members__.get(label.upper(), DEFAULT_PRIORITY)


def _short(value: str | int) -> str | int:
    return value[:LONGEST_NAME] if isinstance(value, str) else value


LEVELS = levels_of(os.environ.get(VARIABLE, "").strip() or USUAL)

if TYPE_CHECKING:

    class Priority(_Level):
        """The levels, most urgent first. The number is the rank on the wire and in every store's index."""

        INTERACTIVE = 0
        USER_VISIBLE = 1
        EVENTUAL = 2
        REPORTING = 3

else:
    Priority = _Level("Priority", [(name.upper(), rank) for rank, name in enumerate(LEVELS.names)], module=__name__)
    Priority.__doc__ = "The levels, most urgent first. The number is the rank on the wire and in every store's index."

#: That of items that name none, the most urgent one, and that of what nobody waits for.
DEFAULT_PRIORITY = Priority(LEVELS.default)
HIGHEST, LOWEST = min(Priority), max(Priority)
#: A plain number compares faster.
LOWEST_RANK = int(LOWEST)
