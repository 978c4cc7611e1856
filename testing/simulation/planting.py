"""How a mistake is planted: a named patch of one real function, for as long as a `with` lasts."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

Bug = contextlib.AbstractContextManager[Any]

#: By name, in words: what makes the mistake for as long as it lasts.
BUGS: dict[str, Callable[[], Bug]] = {}


def bug(make: Callable[[], Bug]) -> Callable[[], Bug]:
    """Registers a mistake by the name of its function, which says what is wrong."""
    BUGS[make.__name__.strip("_").replace("_", " ")] = make
    return make


def instead(owner: Any, name: str, function: Any) -> Bug:
    """Puts a function in the place of another."""
    return mock.patch.object(owner, name, function)


@contextlib.contextmanager
def planted(name: str) -> Iterator[None]:
    """Plants a bug; an empty name plants none. Raises KeyError for an unknown one."""
    with BUGS[name]() if name else contextlib.nullcontext():
        yield
