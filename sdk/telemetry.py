"""Logs: one set-up for every process. Plain lines on a terminal, one JSON object per line elsewhere or when asked.

    TAILRACE_LOG=json | text      overrules the choice
    TAILRACE_LOG_LEVEL=debug      default: info

Both `logging` and `structlog` end here. What stands under a name that sounds like a secret is never written, and nor is
a payload: it is the user's data.
"""

from __future__ import annotations

import logging
import os
import re
import sys
from collections.abc import Mapping, MutableMapping
from typing import Any, TextIO

from .model.errors import ConfigError
from .plain_structlog import structlog

FORMAT_VARIABLE = "TAILRACE_LOG"
LEVEL_VARIABLE = "TAILRACE_LOG_LEVEL"
HIDDEN = "(hidden)"

#: Longest text of one value in a log line; an error message may quote a whole payload.
LONGEST_VALUE = 2000

_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
_SECRET = re.compile(r"passw|secret|token|credential|authorization|api_?key|cookie|^payload", re.IGNORECASE)


def set_up(part: str, *, stream: TextIO | None = None, environment: Mapping[str, str] = os.environ) -> None:
    """Logs of this process go to `stream` (default: standard error), each line naming `part` and the process.

    Raises ConfigError for a format or level that is not known. Harmless twice: the last call counts.
    """
    stream = sys.stderr if stream is None else stream
    level = environment.get(LEVEL_VARIABLE, "info").lower()
    if level not in _LEVELS:
        raise ConfigError(f"{LEVEL_VARIABLE} is {level!r}: expected one of {', '.join(_LEVELS)}")
    chosen = environment.get(FORMAT_VARIABLE) or ("text" if stream.isatty() else "json")
    if chosen not in ("json", "text"):
        raise ConfigError(f"{FORMAT_VARIABLE} is {chosen!r}: expected json or text")

    def name_part(logger: Any, method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        event["part"], event["pid"] = part, os.getpid()
        return event

    shared: list[Any] = [
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.ExtraAdder(),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
        name_part,
        hide_secrets,
    ]
    render: Any = structlog.processors.JSONRenderer(ensure_ascii=False, default=str) if chosen == "json" else _line
    formatter = structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=shared, processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, render]
    )
    handler = logging.StreamHandler(stream)
    handler.setFormatter(formatter)
    handler.set_name("tailrace")
    root = logging.getLogger()
    for old in [each for each in root.handlers if each.get_name() == "tailrace"]:
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(logging.WARNING)
    logging.getLogger("tailrace").setLevel(_LEVELS[level])
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )


def hide_secrets(logger: Any, method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Hides values by their names, at any depth, and cuts long ones."""
    for name, value in list(event.items()):
        event[name] = _safe(name, value)
    return event


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


def _line(logger: Any, method: str, event: MutableMapping[str, Any]) -> str:
    """One line for people; a traceback follows on lines of its own."""
    facts = dict(event)
    moment = str(facts.pop("timestamp", ""))[11:23]
    level, name = str(facts.pop("level", "info")), facts.pop("part", "")
    text, trace = str(facts.pop("event", "")), facts.pop("exception", "")
    facts.pop("logger", None)
    facts.pop("pid", None)
    rest = "".join(f"  {key}={value}" for key, value in facts.items())
    mark = "" if level == "info" else f"{level}: "
    return f"{moment} {name:>9}  {mark}{text}{rest}" + (f"\n{trace}" if trace else "")
