"""A poll that fails on records that cannot be read leaves none of them behind: kafka-python would ask those for more
without an end at the next one."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tailrace.stores.kafka.python import poll


class Unreadable:
    """Records fetched of one partition, which cannot be read."""

    def __init__(self) -> None:
        self.drained = False

    def drain(self) -> None:
        self.drained = True


class Consumer:
    """Raises at once, or, like kafka-python, at the poll after one that brought something of another partition."""

    def __init__(self, records: Unreadable, later: bool) -> None:
        self._fetcher = SimpleNamespace(_next_partition_records=records, _next_in_line_exception_metadata=None)
        self._later = later

    def poll(self, milliseconds: int) -> Any:
        assert self._fetcher._next_partition_records is not None, "it would never return"
        if self._later:
            self._later, self._fetcher._next_in_line_exception_metadata = False, "no codec"
            return {"another": ["record"]}
        raise RuntimeError("no codec")


def test_what_cannot_be_read_is_let_go() -> None:
    records = Unreadable()
    consumer = Consumer(records, later=False)
    with pytest.raises(RuntimeError, match="no codec"):
        poll(consumer, 0.0)
    assert records.drained and consumer._fetcher._next_partition_records is None


def test_what_is_told_only_later_is_let_go_before_the_next_poll() -> None:
    records = Unreadable()
    consumer = Consumer(records, later=True)
    assert poll(consumer, 0.0) == {"another": ["record"]} and not records.drained
    consumer.poll = lambda milliseconds: records.drained  # type: ignore[method-assign]
    assert poll(consumer, 0.0)
