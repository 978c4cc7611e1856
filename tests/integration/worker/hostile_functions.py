# ruff: noqa: PLR0912 - what these functions raise and return is their purpose
"""Functions that raise and return what nobody should: objects whose every method raises, lies or never returns."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import ctypes
import os
import stat
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tailrace.model.errors import Fatal, RetryLater, Throttled
from tailrace.sdk.context import Context
from tailrace.sdk.function import function


class Markup(str):
    """The markup of a template library: a text that is no `str` to a fast encoder."""

    def __getitem__(self, index: Any) -> str:
        raise RuntimeError("no")

    def __len__(self) -> int:
        raise RuntimeError("no")

    def __format__(self, spec: str) -> str:
        raise RuntimeError("no")


class Seconds(float):
    """A number of a library's own class."""

    def __le__(self, other: object) -> bool:
        raise RuntimeError("no")

    def __ge__(self, other: object) -> bool:
        raise RuntimeError("no")


class Unequal:
    """A value that raises when it is compared."""

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("no")

    __hash__ = None  # type: ignore[assignment]


class Liar(Exception):
    """An error about which nothing can be asked."""

    def __str__(self) -> str:
        raise SystemExit(9)

    __repr__ = __str__

    def __eq__(self, other: object) -> bool:
        raise KeyboardInterrupt

    def __hash__(self) -> int:
        raise KeyboardInterrupt

    def __reduce__(self) -> Any:
        raise KeyboardInterrupt

    @property
    def __class__(self) -> type:
        raise KeyboardInterrupt

    @property
    def __traceback__(self) -> Any:
        raise KeyboardInterrupt

    @property
    def __cause__(self) -> Any:
        raise KeyboardInterrupt


class FatalLiar(Fatal):
    """A fatal error that says nothing of why."""

    @property
    def reason(self) -> str:
        raise KeyboardInterrupt

    @reason.setter
    def reason(self, value: str) -> None: ...


class Meta(type):
    def __getattribute__(cls, name: str) -> Any:
        raise RuntimeError("no")


class Unnamed(Exception, metaclass=Meta):
    """An error whose class cannot be asked either."""


class Endless:
    def __iter__(self) -> Iterator[int]:
        raise KeyboardInterrupt


class Odd(dict):  # type: ignore[type-arg]
    def items(self) -> Any:
        raise RuntimeError("no")

    def __iter__(self) -> Any:
        raise RuntimeError("no")

    def __len__(self) -> int:
        raise RuntimeError("no")


class Slow(Exception):
    """An error whose text takes for ever."""

    def __str__(self) -> str:
        time.sleep(600)
        return ""


known: contextvars.ContextVar[Any] = contextvars.ContextVar("known")
known.set(None)


def act(kind: str) -> Any:
    match kind:
        case "surrogate":
            raise ValueError("half of a pair: \udcff")
        case "markup":
            raise Fatal(Markup("no <b>more</b>"))
        case "fatal_error":
            raise Fatal(KeyError("missing"))  # type: ignore[arg-type]
        case "later_error":
            raise RetryLater(OSError("away"), after=Seconds(3))  # type: ignore[arg-type]
        case "later_text":
            raise RetryLater("busy", after=Markup("5m"))
        case "later_huge":
            raise RetryLater("busy", after=10**400)
        case "later_infinite":
            raise RetryLater("busy", after=float("inf"))
        case "later_beyond":
            raise RetryLater("busy", after=1e300)
        case "throttled":
            raise Throttled(downstream="\udcff", retry_after=float("nan"))
        case "liar":
            raise Liar
        case "fatal_liar":
            raise FatalLiar
        case "unnamed":
            raise Unnamed("x")
        case "group":
            raise BaseExceptionGroup("all", [Liar(), SystemExit(1)])
        case "endless":
            return Endless()
        case "odd":
            return Odd(a=1)
        case "generator":
            return (1 // 0 for _ in range(3))
        case "half":
            return "\udcff"
        case "deep":
            value: list[Any] = []
            for _ in range(100_000):
                value = [value]
            return value
        case "variable":
            known.set(Unequal())
    return None


@function
async def acts(kind: str) -> Any:
    return act(kind)


@function
def acts_plain(kind: str) -> Any:
    return act(kind)


@function
async def notes(journal: str, note: str, ctx: Context) -> None:
    """Notes how far it is with texts that cannot be sent, and waits to be told to end."""
    ctx.progress(note.encode().decode("unicode_escape"))
    ctx.progress(Markup(f"{note.encode().decode('unicode_escape')} two"))
    while not Path(f"{journal}.go").exists():
        await asyncio.sleep(0.01)


@function
async def cancels_its_runner_later() -> None:
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().call_later(0.02, task.cancel)


@function
async def counts(upto: int) -> int:
    return upto


@function
def interrupts_its_thread_later(journal: str, name: str) -> None:
    """Interrupts its thread later, as a time-out library does that forgets to take it back."""
    ident = threading.get_ident()

    def strike() -> None:
        while not Path(f"{journal}.go").exists():
            time.sleep(0.01)
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(ident), ctypes.py_object(ZeroDivisionError))
        Path(f"{journal}.{name}.struck").touch()

    threading.Thread(target=strike, daemon=True).start()


def fork(how: str, journal: str) -> int:
    """Forks; the fork comes back to the function's caller. Returns how it ended."""
    child = os.fork()
    if not child:
        Path(f"{journal}.{how}.forked").write_text(str(os.getpid()))
        if how == "raises":
            os.execv("/nonexistent", ["program that is not there"])  # the classic
        if how == "exits":
            sys.exit(7)
        return 0
    return status_of(child)


def status_of(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@function
async def forks(how: str, journal: str) -> int:
    if how == "awaits":
        child = os.fork()
        await asyncio.sleep(0)  # what needs no loop: anything else raises in a fork
        return status_of(child) if child else 0
    return fork(how, journal)


@function
def forks_plain(how: str, journal: str) -> int:
    return fork(how, journal)


@function
async def steps(upto: int) -> int:
    """Lets others go on between its steps."""
    for _ in range(upto):
        await asyncio.sleep(0)
    return os.getpid()


@function
async def writes_into_sockets(what: str) -> None:
    """Writes into every socket of the process, as a library does that closed a descriptor twice and uses the number
    again."""
    for fd in sorted(map(int, os.listdir("/dev/fd"))):  # noqa: PTH208 - what started it may have had many
        with contextlib.suppress(OSError):
            if stat.S_ISSOCK(os.fstat(fd).st_mode):
                os.write(fd, bytes.fromhex(what))
    await asyncio.sleep(600)


@function(timeout=0.3)
async def tells_slowly() -> None:
    raise Slow


@function(timeout=0.3)
def tells_slowly_plain() -> None:
    raise Slow
