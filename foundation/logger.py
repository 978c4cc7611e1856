"""A logger whose lines carry facts by name beside their text: a standard one, with keyword arguments for `extra`."""

from __future__ import annotations

import logging
from typing import Any

#: The attribute of a log record that holds its facts.
FACTS = "tailrace_facts"


class Logger:
    """Writes by the standard logger of this name: `log.warning("drain timed out", tailer="orders")`."""

    __slots__ = ("_logger",)

    def __init__(self, name: str) -> None:
        self._logger = logging.getLogger(name)

    def debug(self, event: str, /, **facts: Any) -> None:
        """Logs a detail for the search for a fault."""
        self._write(logging.DEBUG, event, None, facts)

    def info(self, event: str, /, **facts: Any) -> None:
        """Logs an event that is as it should be."""
        self._write(logging.INFO, event, None, facts)

    def warning(self, event: str, /, **facts: Any) -> None:
        """Logs an event that somebody may have to look at."""
        self._write(logging.WARNING, event, None, facts)

    def error(self, event: str, /, exc_info: BaseException | None = None, **facts: Any) -> None:
        """Logs an event that somebody has to look at; with the error's traceback where there is one."""
        self._write(logging.ERROR, event, exc_info, facts)

    def exception(self, event: str, /, **facts: Any) -> None:
        """Logs such an event with the error that is being handled."""
        self._write(logging.ERROR, event, True, facts)

    def _write(self, level: int, event: str, error: BaseException | bool | None, facts: dict[str, Any]) -> None:
        if self._logger.isEnabledFor(level):
            self._logger.log(level, event, exc_info=error, extra={FACTS: facts}, stacklevel=3)


def facts_of(record: logging.LogRecord) -> dict[str, Any]:
    """The facts of a record, also those that a standard logger was given as `extra`."""
    found = {name: value for name, value in vars(record).items() if name not in _STANDARD}
    found.update(found.pop(FACTS, {}))
    return found


#: The attributes that every record has, and those that formatters add.
_STANDARD = vars(logging.makeLogRecord({})).keys() | {"message", "asctime", "taskName"}
