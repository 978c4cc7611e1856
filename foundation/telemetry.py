"""Logs: one set-up for every process. Plain lines on a terminal, one JSON object per line elsewhere or when asked.

    TAILRACE_LOG=json | text      overrules the choice
    TAILRACE_LOG_LEVEL=debug      default: info

All of it is the standard library's `logging`. A value under a name that sounds like a secret is never written, nor is a
payload: it is the user's data.
"""

from __future__ import annotations

import json
import logging
import os
import re
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, TextIO

from ..model.errors import ConfigError
from ..model.plain_text import printable
from . import current_run, listener_logs, otel
from .logger import facts_of

FORMAT_VARIABLE = "TAILRACE_LOG"
LEVEL_VARIABLE = "TAILRACE_LOG_LEVEL"
HIDDEN = "(hidden)"

#: Longest text of one value in a log line; an error message may quote a whole payload.
LONGEST_VALUE = 2000

_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
_SECRET = re.compile(r"passw|secret|token|credential|authorization|api_?key|cookie|^payload", re.IGNORECASE)


def set_up(
    part: str, *, stream: TextIO | None = None, environment: Mapping[str, str] = os.environ, number: int = 0
) -> None:
    """Sends the logs of this process to `stream` (default: standard error). Each line names `part` and the process: by
    `number`, where others know this process by another one than its own (a fork names itself by its own).

    Raises ConfigError for a format or level that is not known. Harmless twice: the last call counts.
    """
    stream = sys.stderr if stream is None else stream
    level = environment.get(LEVEL_VARIABLE, "info").lower()
    if level not in _LEVELS:
        raise ConfigError(f"{LEVEL_VARIABLE} is {level!r}: expected one of {', '.join(_LEVELS)}")
    chosen = environment.get(FORMAT_VARIABLE) or ("text" if stream.isatty() else "json")
    if chosen not in ("json", "text"):
        raise ConfigError(f"{FORMAT_VARIABLE} is {chosen!r}: expected json or text")
    handler = logging.StreamHandler(stream)
    handler.setFormatter(_Json(part, number) if chosen == "json" else _Text(part))
    handler.set_name("tailrace")
    root = logging.getLogger()
    for old in [each for each in root.handlers if each.get_name() == "tailrace"]:
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(logging.WARNING)
    logging.getLogger("tailrace").setLevel(_LEVELS[level])
    listener_logs.set_filters()
    otel.set_up(part, environment, number)


class _Json(logging.Formatter):
    """One JSON object per line: the event, its facts, and the process and part that logged it."""

    def __init__(self, part: str, number: int) -> None:
        super().__init__()
        self._part = part
        self._here = os.getpid()
        self._number = number or self._here

    def format(self, record: logging.LogRecord) -> str:
        """Makes the line."""
        line = current_run.facts() | facts_of(record)
        line["event"] = record.getMessage()
        line["level"] = record.levelname.lower()
        line["logger"] = record.name
        line["timestamp"] = _moment(record).isoformat().replace("+00:00", "Z")
        if trace := _trace(self, record):
            line["exception"] = trace
        pid = os.getpid()
        line["part"], line["pid"] = self._part, self._number if pid == self._here else pid
        return json.dumps(hide_secrets(line), ensure_ascii=False, default=str)


class _Text(logging.Formatter):
    """One line for people; a traceback follows on lines of its own. Line breaks and escapes of callers are shown as
    such: they would make lines of their own, or drive the terminal."""

    def __init__(self, part: str) -> None:
        super().__init__()
        self._part = part

    def format(self, record: logging.LogRecord) -> str:
        """Makes the line."""
        moment = _moment(record).strftime("%H:%M:%S.%f")[:12]
        mark = "" if record.levelno == logging.INFO else f"{record.levelname.lower()}: "
        said = hide_secrets({**current_run.facts(), **facts_of(record), "event": record.getMessage()})
        text = said.pop("event")
        rest = "".join(f"  {name}={value}" for name, value in said.items())
        trace = "".join(f"\n{printable(line)}" for line in _trace(self, record).split("\n") if line)
        return f"{moment} {self._part:>9}  {printable(f'{mark}{text}{rest}')}{trace}"


def _moment(record: logging.LogRecord) -> datetime:
    return datetime.fromtimestamp(record.created, UTC)


def _trace(formatter: logging.Formatter, record: logging.LogRecord) -> str:
    """The traceback, and the stack that was asked for."""
    trace = formatter.formatException(record.exc_info) if record.exc_info and record.exc_info[0] else ""
    return "\n".join(filter(None, (trace, record.stack_info)))


def hide_secrets(facts: Mapping[str, Any]) -> dict[str, Any]:
    """The facts, with values hidden by their names, at any depth, and long ones cut."""
    return {name: _safe(name, value) for name, value in facts.items()}


def _safe(name: str, value: Any) -> Any:
    if _SECRET.search(name):
        return HIDDEN
    if isinstance(value, Mapping):
        return {str(key): _safe(str(key), inner) for key, inner in value.items()}
    if isinstance(value, bytes):
        return f"({len(value)} bytes)"
    if isinstance(value, str) and len(value) > LONGEST_VALUE:
        return value[:LONGEST_VALUE] + f"… ({len(value)} characters)"
    return value
