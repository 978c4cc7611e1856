"""Tames the logs of the libraries that listen, where a caller made the mistake: bytes that cannot be read give one
plain line in place of a traceback, and an answer whose caller has gone gives none.

aiohttp logs such bytes as an error of this process with all its frames, though it did nothing wrong: the sender gets an
answer that says so. gRPC does the same for an answer that nobody waits for any more. (`wire/malformed_messages.py`
reads bytes for gRPC's methods.) An error of a handler keeps its traceback, also when it is of the same kind.
"""

from __future__ import annotations

import logging
from typing import Final

#: The longest text of a library's words, which may quote the bytes.
LONGEST: Final = 200


def set_filters() -> None:
    """Sets the filters on the loggers of those libraries. Harmless twice."""
    for name, rule in _RULES.items():
        logging.getLogger(name).addFilter(rule)


def words(error: BaseException) -> str:
    """The text of an error, on one line."""
    text = " ".join(str(error).split())
    return text if len(text) <= LONGEST else text[:LONGEST] + "…"


def _of_http(record: logging.LogRecord) -> bool:
    """Takes the traceback away from a record about bytes that aiohttp's parser could not read. (It goes by the name of
    the error's class: a process that only sets up logs imports neither library.)"""
    _, error, _ = record.exc_info or (None, None, None)
    if error is not None and any(kind.__name__ == "HttpProcessingError" for kind in type(error).__mro__):
        record.msg, record.args = f"bytes that cannot be read: {record.getMessage()}: {words(error)}", ()
        record.exc_info = record.exc_text = None
        record.levelno, record.levelname = logging.WARNING, logging.getLevelName(logging.WARNING)
    return True


def _of_calls(record: logging.LogRecord) -> bool:
    """Drops gRPC's record about an answer that it could not send because the call is over, ended by its caller or its
    deadline. Only gRPC's core raises this, so no error of a handler is taken for one."""
    _, error, _ = record.exc_info or (None, None, None)
    return type(error).__name__ != "ExecuteBatchError"


#: The loggers of the libraries that listen, each with its own rule.
_RULES: Final = {"grpc._cython.cygrpc": _of_calls, "aiohttp.server": _of_http}
