"""Planting a mistake: a named patch of one real function, for as long as a `with` lasts."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple
from unittest import mock

Bug = contextlib.AbstractContextManager[Any]


class Breach(NamedTuple):
    """The rule of the leases that a mistake breaks (docs/leases.md), and the promise that finds it, by the first words
    of a violation."""

    law: str
    by: str


#: Mistakes by their names, in words: a context that plants one for as long as it lasts.
BUGS: dict[str, Callable[[], Bug]] = {}
#: Breaches by the same names: of mistakes that break a rule of the leases.
BREACHES: dict[str, Breach] = {}


def bug(make: Callable[[], Bug]) -> Callable[[], Bug]:
    """Registers a mistake by the name of its function, which says what is wrong."""
    BUGS[_in_words(make)] = make
    return make


def breaks(law: str, *, by: str) -> Callable[[Callable[[], Bug]], Callable[[], Bug]]:
    """Registers a mistake that breaks a rule of the leases, with the promise that finds it."""

    def register(make: Callable[[], Bug]) -> Callable[[], Bug]:
        BREACHES[_in_words(make)] = Breach(law, by)
        return bug(make)

    return register


def _in_words(make: Callable[[], Bug]) -> str:
    return make.__name__.strip("_").replace("_", " ")


def instead(owner: Any, name: str, function: Any) -> Bug:
    """Puts a function in the place of another."""
    return mock.patch.object(owner, name, function)


@contextlib.contextmanager
def planted(name: str) -> Iterator[None]:
    """Plants a bug; an empty name plants none. Raises KeyError for an unknown one."""
    with BUGS[name]() if name else contextlib.nullcontext():
        yield
