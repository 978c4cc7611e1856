"""The Kafka client on confluent-kafka (librdkafka), faster than kafka-python: the extra kafka-native."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, TypeVar

from confluent_kafka import KafkaException, Producer

from ..log.log import Records
from .client import MAX_MESSAGE, Append
from .options import KafkaOptions
from .records import UNREADABLE, headers_of, text_of, to_kafka, with_tombstone

T = TypeVar("T")
#: Milliseconds that the broker keeps a request for records that are not there yet.
FETCH_WAIT = 100


def settings_of(options: KafkaOptions) -> dict[str, Any]:
    """The settings that consumers, producers and admin clients have in common."""
    options.check_files()
    settings: dict[str, Any] = {
        "bootstrap.servers": ",".join(options.bootstrap_servers),
        "client.id": "tailrace",
        "security.protocol": options.security,
        "socket.timeout.ms": int(options.request_timeout * 1000),
        "reconnect.backoff.max.ms": 1000,
        "topic.metadata.refresh.interval.ms": 60_000,
        "topic.metadata.refresh.fast.interval.ms": 50,
        "topic.metadata.propagation.max.ms": 1000,
        "log_level": 2,  # one cause is many lines there, again and again while a broker is away
    }
    if options.security.startswith("sasl"):
        settings["sasl.mechanism"] = options.mechanism
        settings["sasl.username"] = options.username
        settings["sasl.password"] = options.password.get_secret_value()
    if options.security.endswith("ssl"):
        files = {
            "ssl.ca.location": options.ca,
            "ssl.certificate.location": options.certificate,
            "ssl.key.location": options.key,
            "ssl.key.password": options.key_password.get_secret_value(),
        }
        settings |= {name: value for name, value in files.items() if value}
        settings["ssl.endpoint.identification.algorithm"] = "https" if options.check_hostname else "none"
    return settings


def consumer_settings(options: KafkaOptions) -> dict[str, Any]:
    """The settings of every consumer of ours: it commits no offset and resets no position by itself."""
    return settings_of(options) | {
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "auto.offset.reset": "error",
        "fetch.wait.max.ms": FETCH_WAIT,
        "fetch.message.max.bytes": 2 << 20,
        "queued.max.messages.kbytes": 16 << 10,
        "queued.min.messages": 16384,
        "fetch.queue.backoff.ms": 10,  # by default a partition whose queue was full waits a second
        "isolation.level": options.isolation,
    }


def taken(consumer: Any, most: int, seconds: float) -> list[Any]:
    """The messages that have arrived, at most `most`. Waits up to `seconds` for the first one only, while `consume`
    alone would wait for all of them."""
    first = consumer.poll(seconds)
    return [] if first is None else [first, *consumer.consume(most - 1, 0)] if most > 1 else [first]


def columns_of(messages: Sequence[Any]) -> Records:
    """Messages of one partition as columns."""
    cache: dict[tuple[object, ...], Any] = {}
    return Records(
        [message.offset() for message in messages],
        [message.timestamp()[1] / 1000 for message in messages],
        [text_of(message.key()) for message in messages],
        [with_tombstone(headers_of(_headers(message), cache), message.value()) for message in messages],
        [message.value() or b"" for message in messages],
    )


def _headers(message: Any) -> Any:
    """The headers of a message. librdkafka's Python interface gives none of them where a name is not UTF-8: then one
    header says so and stands for all, since a record that cannot be read would stop its partition."""
    try:
        return message.headers()
    except UnicodeDecodeError:
        return [(UNREADABLE, b"1")]


class ConfluentWriter:
    """A Writer; see client.py."""

    def __init__(self, options: KafkaOptions) -> None:
        self._timeout = options.request_timeout
        self._producer = Producer(
            settings_of(options)
            | {
                "acks": "all",
                "enable.idempotence": True,
                "delivery.timeout.ms": int(options.request_timeout * 1000),
                "linger.ms": 0,
                "allow.auto.create.topics": False,
                "message.max.bytes": MAX_MESSAGE,
                "batch.size": 1 << 20,
                "queue.buffering.max.kbytes": 256 << 10,
                "queue.buffering.max.messages": 1_000_000,
            }
        )

    def append(self, appends: Sequence[Append]) -> list[int | BaseException]:
        found = [self._send(append) for append in appends]
        self._producer.flush(self._timeout + 1)
        return [_first(append, offsets) for append, offsets in zip(appends, found, strict=True)]

    def _send(self, append: Append) -> list[int | BaseException]:
        """Hands the records to the producer; returns a list that their offsets, or errors, will be added to."""
        topic, partition = append.place
        offsets: list[int | BaseException] = []
        heard = partial(_heard, offsets)
        for record in append.records:
            key, headers = to_kafka(record.key, record.headers)
            while True:
                try:
                    self._producer.produce(
                        topic,
                        record.payload,
                        key,
                        partition,
                        on_delivery=heard,
                        timestamp=append.time,
                        headers=list(headers),
                    )
                except BufferError:
                    self._producer.poll(0.1)  # its queue is full: what goes out makes room
                    continue
                except KafkaException as error:
                    offsets.append(error)
                break
        self._producer.poll(0)
        return offsets

    def close(self) -> None:
        self._producer.purge()


def _heard(offsets: list[int | BaseException], error: Any, message: Any) -> None:
    offsets.append(message.offset() if error is None else KafkaException(error))


def _first(append: Append, offsets: list[int | BaseException]) -> int | BaseException:
    for each in offsets:
        if isinstance(each, BaseException):
            return each
    if len(offsets) < len(append.records):
        return TimeoutError(f"{len(append.records) - len(offsets)} records were not acknowledged in time")
    return min(offset for offset in offsets if isinstance(offset, int))
