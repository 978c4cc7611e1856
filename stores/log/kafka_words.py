"""What kafka-python says nowhere but in its log: why it cannot connect. Kept for whoever explains the failure.

Its own log is many lines for one cause, again and again while a broker is away; here it is ours, at debug.
"""

from __future__ import annotations

import logging
import time

from kafka.errors import KafkaTimeoutError

#: Words that name a cause rather than its consequences.
TELLING = ("uthenticat", "andshake", "certificate", "SASL", "SSL: ")
#: Words of somebody who listens and does not want to talk: a cause too, where nothing better was said.
HANGING_UP = "socket disconnected"

_ours = logging.getLogger("tailrace.kafka")


class _Listening(logging.Handler):
    """The last telling line, the last one that somebody hung up, and when they were said."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.said = self.hung_up = ("", 0.0)

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno >= logging.WARNING:
            words = record.getMessage()
            if any(telling in words for telling in TELLING):
                self.said = words, time.monotonic()
            elif HANGING_UP in words:
                self.hung_up = words, time.monotonic()
            _ours.debug("%s: %s", record.name, words)


_listening = _Listening()


def listen() -> None:
    """Takes kafka-python's log. Harmless when repeated."""
    logger = logging.getLogger("kafka")
    if _listening not in logger.handlers:
        logger.addHandler(_listening)
        logger.propagate = False


def telling(error: Exception, since: float) -> Exception:
    """The error, or what was behind one that only says that time ran out, if that was said `since` then (monotonic)."""
    if isinstance(error, KafkaTimeoutError):
        for words, at in (_listening.said, _listening.hung_up):
            if at >= since:
                return ConnectionError(f"{words} ({error})")
    return error
