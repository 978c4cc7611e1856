"""Reasons of kafka-python why it cannot connect, which it says nowhere but in its log. Kept for whoever explains the
failure.

Its own log is many lines for one cause, again and again while a broker is away; here it is ours, at debug. A line does
not say of which client it is, but the thread that says it does: each client that is made has one of its own.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from kafka.errors import KafkaTimeoutError
from kafka.net.compat import KafkaNetClient
from kafka.net.selector import NetworkSelector

#: Words that name a cause rather than its consequences.
TELLING = ("uthenticat", "andshake", "certificate", "SASL", "SSL: ")
#: Words of somebody who listens and does not want to talk: a cause too, where nothing better was said.
HANGING_UP = "socket disconnected"
#: A warning that credentials are on their way: no cause, but whoever hangs up then does so because of them.
GIVING = "in the clear"

_ours = logging.getLogger("tailrace.kafka")
_numbers = itertools.count(1)


class Heard:
    """The words of one client while it was made: the last telling line, and the last one that somebody hung up."""

    def __init__(self) -> None:
        self.name = f"tailrace-{next(_numbers)}"
        self._said = self._hung_up = ""
        self._given = False

    def client(self, **settings: Any) -> KafkaNetClient:
        """For kafka-python's `kafka_client`: its thread bears our name; what the broker is told stays as it is."""
        return KafkaNetClient(net=NetworkSelector(**settings | {"client_id": self.name}), **settings)

    def note(self, words: str) -> None:
        """One line of its log."""
        if GIVING in words:
            self._given = True
        elif any(telling in words for telling in TELLING):
            self._said = words
        elif HANGING_UP in words:
            self._hung_up = f"{words}, at the authentication" if self._given else words

    def behind(self, error: Exception) -> Exception:
        """The error, or what was behind one that only says that time ran out."""
        words = self._said or self._hung_up
        return ConnectionError(f"{words} ({error})") if words and isinstance(error, KafkaTimeoutError) else error


class _Listening(logging.Handler):
    """A handler of the library's log. `heard`: clients that are being made, by the name of their thread."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.heard: dict[str, Heard] = {}

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno >= logging.WARNING:
            words = record.getMessage()
            if (heard := self.heard.get(record.threadName or "")) is not None:
                heard.note(words)
            _ours.debug("%s: %s", record.name, words)


_listening = _Listening()


@contextmanager
def listening() -> Iterator[Heard]:
    """Takes kafka-python's log, and hears one client while it is made."""
    logger = logging.getLogger("kafka")
    if _listening not in logger.handlers:
        logger.addHandler(_listening)
        logger.propagate = False
    heard = Heard()
    thread = f"kafka-io-{heard.name}"
    _listening.heard[thread] = heard
    try:
        yield heard
    finally:
        del _listening.heard[thread]
