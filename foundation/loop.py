"""The event loop that a process of tailrace runs on: uvloop's where it is installed (the extra `fast`), else asyncio's.

A lone item passes every process's event loop several times, and the cost of a turn is most of its waiting.
Executors stay on asyncio's: functions run there, and how a process of theirs ends depends on what a loop lets through.
"""

from __future__ import annotations

import asyncio
import contextlib
import faulthandler
import importlib
import importlib.util
import os
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from ..model.errors import ConfigError

#: `asyncio` or `uvloop`; unset or empty: uvloop where it is installed.
VARIABLE = "TAILRACE_LOOP"

T = TypeVar("T")


def run(main: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine as `asyncio.run` does, on the loop that this process is to have. Raises ConfigError when the
    variable names none."""
    try:
        factory = loop_factory(os.environ.get(VARIABLE, ""))
    except ConfigError:
        main.close()
        raise
    if factory is not None:
        say_where_it_ends()
    with asyncio.Runner(loop_factory=factory) as runner:
        return runner.run(main)


def say_where_it_ends() -> None:
    """Has the stack of each thread logged when libuv or gRPC end the process by SIGABRT, which they do without a word,
    as where somebody closed a descriptor under them."""
    if not faulthandler.is_enabled():
        with contextlib.suppress(OSError, ValueError, RuntimeError, AttributeError):  # there is no file behind stderr
            faulthandler.enable()


def loop_factory(choice: str) -> Callable[[], asyncio.AbstractEventLoop] | None:
    """The factory of the loop; None: asyncio's own. Raises ConfigError for another choice, or a loop that is not
    installed."""
    if choice not in ("", "asyncio", "uvloop"):
        raise ConfigError(f"{VARIABLE}={choice}: expected asyncio or uvloop (unset: uvloop where it is installed)")
    if choice == "asyncio":
        return None
    if importlib.util.find_spec("uvloop") is None:
        if choice == "uvloop":
            raise ConfigError(f'{VARIABLE}=uvloop, which is not installed: pip install "tailrace[fast]", or unset it')
        return None
    made: Callable[[], asyncio.AbstractEventLoop] = importlib.import_module("uvloop").new_event_loop
    return made
