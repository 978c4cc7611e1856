"""Answers of an SQLite file's writer, and the order in which the callers that wait for a commit get them."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..loop_turns import PUSHED

WriteFunction = Callable[[sqlite3.Connection], Any]


@dataclass(slots=True, eq=False)
class Write:
    """One write, and the future that waits for it since `told`. Times are monotonic seconds. `deadline`: until when a
    standing write waits; None: it is no standing write. `look`: when a standing write is to be asked again; `asked`: it
    was asked before."""

    fn: WriteFunction
    future: asyncio.Future[Any]
    deadline: float | None
    committed: Callable[[Any], None] | None
    told: float = 0.0
    look: float = 0.0
    asked: bool = False


#: The value of a write whose caller gave up before its turn.
SKIPPED = object()
#: A write, its value, and its error.
Answer = tuple[Write, Any, Exception | None]


def resolve(answers: list[Answer]) -> None:
    """Resolves answers. Standing writes come first, because a leased item goes on to its function. A submitter only
    learns that its item is safe, so it is told a few turns of the event loop later."""
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
