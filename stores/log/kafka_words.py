"""What kafka-python says nowhere but in its log: why it cannot connect. Kept for whoever explains the failure.

Its own log is many lines for one cause, again and again while a broker is away; here it is ours, at debug.
"""

from __future__ import annotations

import logging
import time

from kafka.errors import KafkaTimeoutError

#: Words that name a cause rather than its consequences.
TELLING = ("uthenticat", "andshake", "certificate", "SASL", "SSL")
#: Seconds after which what was said is about something else.
FRESH = 30.0

_ours = logging.getLogger("tailrace.kafka")


class _Listening(logging.Handler):
    """The last telling line, and when it was said."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.said = ""
        self.at = 0.0

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno >= logging.WARNING:
            words = record.getMessage()
            if any(telling in words for telling in TELLING):
                self.said, self.at = words, time.monotonic()
            _ours.debug("%s: %s", record.name, words)


_listening = _Listening()


def listen() -> None:
    """Takes kafka-python's log. Harmless when repeated."""
    logger = logging.getLogger("kafka")
    if _listening not in logger.handlers:
        logger.addHandler(_listening)
        logger.propagate = False


def telling(error: Exception) -> Exception:
    """The error, or what was behind one that only says that time ran out."""
    if isinstance(error, KafkaTimeoutError) and time.monotonic() - _listening.at < FRESH:
        return ConnectionError(f"{_listening.said} ({error})")
    return error
