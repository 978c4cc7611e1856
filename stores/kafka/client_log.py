"""The reasons for which kafka-python cannot connect: it tells them in its log only, so they are kept from there, to
explain the failure.

The library logs many lines for one cause, again and again while a broker is away; here its log becomes ours, at debug.
A line does not name its client, but its thread does: each client that is made has a thread of its own.
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

#: Words of lines that name a cause rather than its consequences.
TELLING = ("uthenticat", "andshake", "certificate", "SASL", "SSL: ")
#: Words of a line about a peer that accepts a connection and closes it: a cause too, where no better one was logged.
HANGING_UP = "socket disconnected"
#: Words of a warning that credentials are sent: no cause, but a peer that closes the connection then does so because of
#: them.
GIVING = "in the clear"

_ours = logging.getLogger("tailrace.kafka")
_numbers = itertools.count(1)


class ClientLogLines:
    """Log lines of one client while it was made: the last one that names a cause, and the last one that tells of a
    closed connection."""

    def __init__(self) -> None:
        self.name = f"tailrace-{next(_numbers)}"
        self._said = self._hung_up = ""
        self._given = False

    def client(self, **settings: Any) -> KafkaNetClient:
        """Makes the network client that kafka-python takes as `kafka_client`: its thread bears our name, while the
        broker is told the usual client id. No question of it makes a topic: kafka-python 3.0.12 does not hand its own
        setting for that on to where the questions are made."""
        client = KafkaNetClient(net=NetworkSelector(**settings | {"client_id": self.name}), **settings)
        client.cluster.config["allow_auto_create_topics"] = False
        return client

    def note(self, words: str) -> None:
        """Takes one line of the client's log."""
        if GIVING in words:
            self._given = True
        elif any(telling in words for telling in TELLING):
            self._said = words
        elif HANGING_UP in words:
            self._hung_up = f"{words}, at the authentication" if self._given else words

    def behind(self, error: Exception) -> Exception:
        """The error, or the logged reason where the error only says that time ran out."""
        words = self._said or self._hung_up
        return ConnectionError(f"{words} ({error})") if words and isinstance(error, KafkaTimeoutError) else error


class _Listening(logging.Handler):
    """A handler of the library's log. `heard` has the clients that are being made, by the name of their thread."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.heard: dict[str, ClientLogLines] = {}

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno >= logging.WARNING:
            words = record.getMessage()
            if (heard := self.heard.get(record.threadName or "")) is not None:
                heard.note(words)
            _ours.debug("%s: %s", record.name, words)


_listening = _Listening()


@contextmanager
def listening() -> Iterator[ClientLogLines]:
    """Takes over kafka-python's log, and collects the lines of one client while it is made."""
    logger = logging.getLogger("kafka")
    if _listening not in logger.handlers:
        logger.addHandler(_listening)
        logger.propagate = False
    heard = ClientLogLines()
    thread = f"kafka-io-{heard.name}"
    _listening.heard[thread] = heard
    try:
        yield heard
    finally:
        del _listening.heard[thread]
