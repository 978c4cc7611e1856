"""The answers of an SQLite file's writer: in which order those who wait for a commit hear of it."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ...foundation.handed_on import HandedOn
from ...model.linger import HAND_OVER

Job = Callable[[sqlite3.Connection], Any]


@dataclass(slots=True, eq=False)
class Write:
    """One write and the future that waits for it. `deadline` is monotonic; None: not a standing write, which `asker`
    made."""

    fn: Job
    future: asyncio.Future[Any]
    deadline: float | None
    committed: Callable[[Any], None] | None
    look: float = 0.0
    asker: asyncio.Task[Any] | None = None


#: The value of a write that was given up before its turn.
SKIPPED = object()
#: A write, its value, and what it failed with.
Answer = tuple[Write, Any, Exception | None]


def resolve(answers: list[Answer]) -> None:
    """Those of standing writes first, since what was leased is on its way to its function; a submitter, who only hears
    that its item is safe, is told when whoever leased has handed it on."""
    for write, value, error in answers:
        if write.committed is not None and error is None and value is not SKIPPED:
            write.committed(value)
    standing = [answer for answer in answers if answer[0].deadline is not None]
    _tell(standing)
    rest = [answer for answer in answers if answer[0].deadline is None]
    if standing and rest:
        handed_on = HandedOn([answer[0].asker for answer in standing], HAND_OVER.seconds)
        handed_on.future.add_done_callback(lambda done: _tell(rest))
    else:
        _tell(rest)


def _tell(answers: list[Answer]) -> None:
    for write, value, error in answers:
        if write.future.done():
            continue
        if error is None:
            write.future.set_result(value)
        else:
            write.future.set_exception(error)
