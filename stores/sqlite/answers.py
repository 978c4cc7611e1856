"""The answers of an SQLite file's writer: in which order those who wait for a commit hear of it."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..loop_turns import PUSHED

Job = Callable[[sqlite3.Connection], Any]


@dataclass(slots=True, eq=False)
class Write:
    """One write and the future that waits for it, since `told`. `deadline` is monotonic, as all times; None: not a
    standing write. A standing one was `asked` before, and is to be at `look`."""

    fn: Job
    future: asyncio.Future[Any]
    deadline: float | None
    committed: Callable[[Any], None] | None
    told: float = 0.0
    look: float = 0.0
    asked: bool = False


#: The value of a write that was given up before its turn.
SKIPPED = object()
#: A write, its value, and what it failed with.
Answer = tuple[Write, Any, Exception | None]


def resolve(answers: list[Answer]) -> None:
    """Resolves answers: those of standing writes first, since what was leased is on its way to its function; a
    submitter, who only hears that its item is safe, is told when that way had its turns."""
    for write, value, error in answers:
        if write.committed is not None and error is None and value is not SKIPPED:
            write.committed(value)
    standing = [answer for answer in answers if answer[0].deadline is not None]
    if standing and len(standing) < len(answers):
        _tell(standing)
        _tell_later([answer for answer in answers if answer[0].deadline is None], PUSHED)
    else:
        _tell(answers)


def _tell_later(answers: list[Answer], turns: int) -> None:
    if turns:
        asyncio.get_running_loop().call_soon(_tell_later, answers, turns - 1)
    else:
        _tell(answers)


def _tell(answers: list[Answer]) -> None:
    for write, value, error in answers:
        if write.future.done():
            continue
        if error is None:
            write.future.set_result(value)
        else:
            write.future.set_exception(error)
