"""Bytes at a listener that a library cannot read: one plain line of the log each, in place of the library's traceback.

gRPC and aiohttp log such bytes as errors of this process with all their frames, though it did nothing wrong: whoever
sent them is told so. gRPC does the same for an answer whose caller has gone meanwhile: of that the log has nothing. An
error of a handler keeps its traceback, also when it is of the same kind.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable
from types import TracebackType
from typing import Final

#: The longest text of a library's words, which may quote the bytes.
LONGEST: Final = 200


def plainly() -> None:
    """From now on what the libraries of listeners say of unreadable bytes is a line each, and nothing of callers that
    have gone. Harmless twice."""
    for name, rule in _RULES.items():
        logging.getLogger(name).addFilter(rule)


def words(error: BaseException) -> str:
    """The words of an error, on one line."""
    text = " ".join(str(error).split())
    return text if len(text) <= LONGEST else text[:LONGEST] + "…"


def _of_call(error: BaseException, frames: TracebackType) -> bool:
    """Whether gRPC could not read a request: the bytes were handed to nobody yet. (By their names: what only reads a
    log imports neither library.)"""
    names = [frame.f_code.co_name for frame, _ in traceback.walk_tb(frames)]
    return type(error).__name__ == "DecodeError" and names[-1].endswith(".deserialize")


def _unsent(error: BaseException) -> bool:
    """Whether gRPC could not send an answer: the call is over, by its caller or its deadline. Only gRPC's core raises
    this, so no error of a handler is taken for one."""
    return type(error).__name__ == "ExecuteBatchError"


def _of_http(error: BaseException, frames: TracebackType) -> bool:
    """Whether aiohttp's parser could not read a request."""
    return any(kind.__name__ == "HttpProcessingError" for kind in type(error).__mro__)


def _rule(unread: Callable[[BaseException, TracebackType], bool]) -> Callable[[logging.LogRecord], bool]:
    def rule(record: logging.LogRecord) -> bool:
        """Takes the traceback away from what is no more than unreadable. Every other record passes as it is, but those
        of callers that have gone."""
        _, error, frames = record.exc_info or (None, None, None)
        if error is not None and _unsent(error):
            return False
        if error is not None and frames is not None and unread(error, frames):
            said = record.getMessage().partition("raised by servicer method ")[2].strip("[]") or record.getMessage()
            record.msg, record.args = f"bytes that cannot be read: {said}: {words(error)}", ()
            record.exc_info = record.exc_text = None
            record.levelno, record.levelname = logging.WARNING, logging.getLevelName(logging.WARNING)
        return True

    return rule


#: The loggers of the libraries that listen, each with its own rule.
_RULES: Final = {"grpc._cython.cygrpc": _rule(_of_call), "aiohttp.server": _rule(_of_http)}
