"""Mistakes that somebody might make, each as a small patch of one real function: what the simulation must find."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

#: By name: a context manager that makes the mistake for as long as it lasts.
BUGS: dict[str, Callable[[], contextlib.AbstractContextManager[None]]] = {}


@contextlib.contextmanager
def planted(name: str) -> Iterator[None]:
    """Plants a bug; an empty name plants none. Raises KeyError for an unknown one."""
    if not name:
        yield
        return
    with BUGS[name]():
        yield
