"""The Kafka client on kafka-python (3.0: its own loop in a thread of its own, behind blocking calls)."""

from __future__ import annotations

import contextlib
import time
import warnings
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # its way to read its own schemas
    from kafka import KafkaConsumer, KafkaProducer, TopicPartition
    from kafka.errors import KafkaTimeoutError, OffsetOutOfRangeError

from ..log.log import Records
from .client import MAX_MESSAGE, Append, Fetch, Place
from .client_log import listening
from .options import KafkaOptions
from .python_headers import read_all_names
from .records import headers_of, text_of, to_kafka, with_tombstone

#: Partitions that a reader keeps open at once; those read longest ago are closed first.
OPEN = 512
#: Records asked for at once by one poll.
POLL = 4096
#: Seconds for which a question for offsets is left unanswered before it is asked who leads the partitions now.
STALE_AFTER = 1.0
#: Milliseconds that the broker keeps a request for records that are not there yet.
FETCH_WAIT = 100
BATCH_BYTES = 1 << 19

read_all_names()


def made(make: Callable[..., Any], **settings: Any) -> Any:
    """Makes a consumer, a producer or an admin client. An error tells why it cannot connect."""
    with listening() as heard:
        try:
            return make(**settings, kafka_client=heard.client)
        except Exception as error:
            raise heard.behind(error) from error


def settings_of(options: KafkaOptions) -> dict[str, Any]:
    """The settings that consumers, producers and admin clients have in common."""
    options.check_files()
    milliseconds = int(options.request_timeout * 1000)
    settings: dict[str, Any] = {
        "bootstrap_servers": list(options.bootstrap_servers),
        "client_id": "tailrace",
        "security_protocol": options.security.upper(),
        "request_timeout_ms": milliseconds,
        "bootstrap_timeout_ms": milliseconds,
        "retry_backoff_ms": 20,
        "reconnect_backoff_ms": 50,
        "reconnect_backoff_max_ms": 1000,
    }
    if options.api_version:
        settings["api_version"] = tuple(map(int, options.api_version.split(".")))
    if options.security.startswith("sasl"):
        settings["sasl_mechanism"] = options.mechanism
        settings["sasl_plain_username"] = options.username
        settings["sasl_plain_password"] = options.password.get_secret_value()
    if options.security.endswith("ssl"):
        files = {"ssl_cafile": options.ca, "ssl_certfile": options.certificate, "ssl_keyfile": options.key}
        settings |= {name: path for name, path in files.items() if path}
        settings["ssl_password"] = options.key_password.get_secret_value() or None
        settings["ssl_check_hostname"] = options.check_hostname
    return settings


def consumer_settings(options: KafkaOptions) -> dict[str, Any]:
    """The settings of every consumer of ours: it commits no offset and resets no position by itself."""
    return settings_of(options) | {
        "isolation_level": options.isolation,
        "enable_auto_commit": False,
        "auto_offset_reset": "none",
        "allow_auto_create_topics": False,
        "metrics_enabled": False,
        "fetch_max_wait_ms": FETCH_WAIT,
        "max_poll_records": POLL,
        "max_partition_fetch_bytes": 2 << 20,
    }


def poll(consumer: Any, seconds: float) -> Any:
    """Polls a consumer for up to `seconds`; returns its records by partition. All polls go through here, because of two
    faults of kafka-python up to 3.0.12 at least. It keeps records that it had fetched of a paused partition until its
    slot for records is None, and leaves an empty set of records in that slot: a partition that is resumed when no other
    one has anything new would never be heard of again. And records that it could not read stay in the slot too, so that
    the next poll would ask that for more without an end: they are fetched again instead."""
    fetcher = consumer._fetcher
    if fetcher._next_in_line_exception_metadata is not None:
        _discard_fetched(fetcher)
    if not fetcher._next_partition_records:
        fetcher._next_partition_records = None
    try:
        return consumer.poll(int(seconds * 1000))
    except Exception:
        _discard_fetched(fetcher)
        raise


def _discard_fetched(fetcher: Any) -> None:
    records, fetcher._next_partition_records = fetcher._next_partition_records, None
    if records:
        records.drain()


def offsets(consumer: Any, question: Callable[..., Any], about: Any, seconds: float) -> Any:
    """Asks a consumer for offsets. All such questions go through here: where a broker answers that another one leads
    the partition by now, kafka-python up to 3.0.12 at least asks the same broker again without an end, and does not
    learn who leads (for five minutes, by default). So after a while that is asked for."""
    try:
        return question(about, timeout_ms=int(min(STALE_AFTER, seconds) * 1000))
    except KafkaTimeoutError:
        consumer._cluster.request_update()
        return question(about, timeout_ms=int(seconds * 1000))


def columns_of(records: Sequence[Any]) -> Records:
    """Records of one partition as columns."""
    cache: dict[tuple[object, ...], Any] = {}
    return Records(
        [record.offset for record in records],
        [record.timestamp / 1000 for record in records],
        [text_of(record.key) for record in records],
        [with_tombstone(headers_of(record.headers, cache), record.value) for record in records],
        [record.value if record.value is not None else b"" for record in records],
    )


class PythonWriter:
    """A Writer; see client.py."""

    def __init__(self, options: KafkaOptions) -> None:
        self._timeout = options.request_timeout
        milliseconds = int(options.request_timeout * 1000)
        self._producer = made(
            KafkaProducer,
            **settings_of(options) | {"request_timeout_ms": milliseconds // 2},
            acks="all",
            enable_idempotence=True,
            delivery_timeout_ms=milliseconds,
            max_block_ms=milliseconds,
            allow_auto_create_topics=False,
            metrics_enabled=False,
            batch_size=BATCH_BYTES,
            max_request_size=MAX_MESSAGE,
        )

    def append(self, appends: Sequence[Append]) -> list[int | BaseException]:
        waiting = [self._send(append) for append in appends]
        limit = time.monotonic() + self._timeout + 1
        return [self._first(each, limit) for each in waiting]

    def _send(self, append: Append) -> list[Any] | BaseException:
        """Appends the records; returns their futures, or the error. The first record is sent in the usual way, which
        learns of the topic and of the state of the producer. The others go straight where it went, without the same
        questions, which are a third of a record's cost here."""
        (topic, partition), time_ms = append.place, append.time
        place, into, now = TopicPartition(topic, partition), self._producer._accumulator.append, time.monotonic()
        futures: list[Any] = []
        try:
            for record in append.records:
                key, headers = to_kafka(record.key, record.headers)
                if not futures:
                    first = self._producer.send(topic, record.payload, key, headers, partition, time_ms)
                    futures.append(first)
                    continue
                future, is_full, is_new, _ = into(place, time_ms, key, record.payload, headers, now=now)
                if is_full or is_new:
                    self._producer._sender.wakeup()
                futures.append(future)
        except Exception as error:
            return error
        return futures

    @staticmethod
    def _first(futures: list[Any] | BaseException, limit: float) -> int | BaseException:
        if isinstance(futures, BaseException):
            return futures
        try:
            for future in reversed(futures):  # the last one first: when it is there, most others are
                found = future.get(max(0.001, limit - time.monotonic()))
        except Exception as error:
            return error
        return int(found.offset)

    def close(self) -> None:
        try:
            self._producer.close(timeout=0.1)
        except Exception:
            # It gave up waiting for unsent records, and would go on sending them long after they were reported as
            # unknown.
            self._producer._sender.force_close()
            self._producer._closed = True


class PythonReader:
    """A Reader; see client.py.

    Invariant: `_next[place]` is the position at which the consumer of an open partition goes on by itself;
    `_left[place]` has records that it gave and nobody asked for yet, which end just below that position.
    """

    def __init__(self, options: KafkaOptions) -> None:
        self._timeout = options.request_timeout
        self._consumer = made(KafkaConsumer, group_id=None, **consumer_settings(options))
        self._next: OrderedDict[Place, int] = OrderedDict()
        self._left: dict[Place, list[Any]] = {}
        self._ends: dict[Place, int] = {}

    def read(self, fetches: Sequence[Fetch]) -> list[Records | BaseException]:
        wanted = {fetch.place: fetch for fetch in fetches}
        found: dict[Place, list[Any]] = {}
        try:
            again: Mapping[Place, Fetch] = wanted
            for _ in range(2):
                self._look(again)
                there = {place: fetch for place, fetch in again.items() if fetch.position < self._ends[place]}
                self._open(there)
                self._poll(there, found)
                again = {place: fetch for place, fetch in there.items() if place not in found}
                for place in again:  # all trimmed away up to the end that was known: there may be another one now
                    del self._ends[place]
        except Exception as error:
            for place in wanted:
                self._forget(place)
            return [error] * len(fetches)
        return [self._cut(fetch, found.get(fetch.place, [])) for fetch in fetches]

    def _look(self, wanted: Mapping[Place, Fetch]) -> None:
        """Learns the ends of partitions that are not known to be beyond the wanted position."""
        unsure = [place for place, fetch in wanted.items() if fetch.position >= self._ends.get(place, 0)]
        if unsure:
            places = [TopicPartition(*place) for place in unsure]
            ends = offsets(self._consumer, self._consumer.end_offsets, places, self._timeout)
            self._ends.update({(each.topic, each.partition): end for each, end in ends.items()})

    def _open(self, there: Mapping[Place, Fetch]) -> None:
        """Has exactly these partitions fetched, each from the wanted position."""
        fresh = [place for place in there if place not in self._next]
        if fresh:
            for place in fresh:
                self._next[place] = -1
            while len(self._next) > max(OPEN, len(there)):
                oldest = next(place for place in self._next if place not in there)
                del self._next[oldest]
                self._left.pop(oldest, None)
            self._consumer.assign([TopicPartition(*place) for place in self._next])
        for place, fetch in there.items():
            self._next.move_to_end(place)
            left = self._left.get(place)
            at = left[0].offset if left else self._next[place]
            if at != fetch.position:
                self._left.pop(place, None)
                self._seek(place, fetch.position)

    def _seek(self, place: Place, position: int) -> None:
        self._consumer.seek(TopicPartition(*place), position)
        self._next[place] = position

    def _poll(self, there: Mapping[Place, Fetch], found: dict[Place, list[Any]]) -> None:
        """Polls until each partition has records, or is known to have none up to its end; adds them to `found`."""
        for place in there:
            if left := self._left.pop(place, None):
                found[place] = left
        missing = {TopicPartition(*place) for place in there if place not in found}
        if not missing:
            return
        self._consumer.pause(*[each for each in map(_partition, self._next) if each not in missing])
        self._consumer.resume(*missing)
        limit = time.monotonic() + self._timeout
        while missing:
            try:
                polled = poll(self._consumer, 0.05)
            except OffsetOutOfRangeError as error:  # trimmed away: from the start, then
                starts = offsets(self._consumer, self._consumer.beginning_offsets, [*error.args[0]], self._timeout)
                for each, start in starts.items():
                    self._seek((each.topic, each.partition), start)
                polled = {}
            for each, records in polled.items():
                place = (each.topic, each.partition)
                self._next[place] = records[-1].offset + 1
                found[place] = records
                missing.discard(each)
            missing -= {each for each in missing if self._is_over(each)}
            if missing and time.monotonic() > limit:
                raise KafkaTimeoutError(f"no records of {len(missing)} partitions came within {self._timeout:.0f} s")

    def _is_over(self, partition: Any) -> bool:
        """Whether a partition has nothing up to its end but markers, or records that were compacted away."""
        place = (partition.topic, partition.partition)
        position = self._consumer.position(partition)
        if position is None or position < self._ends[place]:
            return False
        self._next[place] = position
        return True

    def _cut(self, fetch: Fetch, records: list[Any]) -> Records:
        """The first records, no more than the request asked for; the rest is kept for the next read."""
        count = min(len(records), fetch.limit)
        size = 0
        for index, record in enumerate(records[:count]):
            size += len(record.value or b"")
            if size > fetch.max_bytes and index:
                count = index
                break
        if count < len(records):
            self._left[fetch.place] = records[count:]
        return columns_of(records[:count])

    def trimmed(self, place: Place, before: int) -> None:
        left = self._left.get(place)
        if (left[0].offset if left else self._next.get(place, before)) < before:
            self._forget(place)

    def _forget(self, place: Place) -> None:
        self._left.pop(place, None)
        self._ends.pop(place, None)
        if place in self._next:
            self._next[place] = -1

    def close(self) -> None:
        with contextlib.suppress(Exception):
            self._consumer.close(autocommit=False, timeout_ms=500)


def _partition(place: Place) -> Any:
    return TopicPartition(*place)
