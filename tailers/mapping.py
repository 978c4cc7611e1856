"""A source's record → what is pushed: kind, id, attempt, key and headers.

Two mappings: by configuration (constants and headers) and, for the delay service's due streams, by what was parked.
Records with the same headers share one entry, so that the usual cost is one dictionary lookup an item.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from ..sdk.model.demand import Cell
from ..sdk.model.errors import InvalidRequest
from ..sdk.model.parked import Parked, parked_from
from ..sdk.model.priority import DEFAULT_PRIORITY, Priority
from ..sdk.model.workload import Extra, Headers, Kind
from ..sdk.source import StreamBatch
from .config import FromHeader, FromRecord, TailerConfig

#: Sets of headers remembered; forgotten whole when full, since headers that never repeat gain nothing.
_REMEMBERED = 65_536


class Entry(NamedTuple):
    """What one set of headers means. `headers` are those that the mapping did not use; they travel with the item."""

    kind: Kind
    cell: Cell
    headers: Headers


@dataclass(slots=True)
class Mapped:
    """A batch, mapped: parallel lists, and sparse what few items have (by index).

    due      wall clock seconds before which an item must not start
    parked   the parked item that a record holds, for items of the delay service
    """

    kinds: list[Kind]
    cells: list[Cell]
    ids: list[str]
    attempts: list[int]
    headers: list[Headers]
    extras: dict[int, Extra] = field(default_factory=dict)
    due: dict[int, float] = field(default_factory=dict)
    parked: dict[int, Parked] = field(default_factory=dict)

    def chosen(self, indexes: Sequence[int]) -> Mapped:
        """Some items of the batch."""
        places = {old: new for new, old in enumerate(indexes)}
        return Mapped(
            [self.kinds[index] for index in indexes],
            [self.cells[index] for index in indexes],
            [self.ids[index] for index in indexes],
            [self.attempts[index] for index in indexes],
            [self.headers[index] for index in indexes],
            {places[old]: extra for old, extra in self.extras.items() if old in places},
            {places[old]: due for old, due in self.due.items() if old in places},
            {places[old]: item for old, item in self.parked.items() if old in places},
        )


class Mapping(Protocol):
    """How a stream's records become items."""

    def map(self, batch: StreamBatch) -> Mapped:
        """Maps a batch; never fails. An item that names no function gets a kind whose function is empty."""

    def kind(self, kind: Kind) -> Kind:
        """What a kind made earlier is today."""

    def refresh(self) -> None:
        """A function's own priority may have changed."""


class FieldMapping:
    """As the tailer's configuration says. `priority_of` knows each function's own priority, None while unknown."""

    def __init__(self, config: TailerConfig, priority_of: Callable[[str], int | None]) -> None:
        self._config = config
        self._priority_of = priority_of
        self._entries: dict[Headers, Entry] = {}
        self._key = config.key
        fields = (config.function, config.priority, config.collection, config.tenant, config.key)
        self._used = frozenset(one.header for one in fields if isinstance(one, FromHeader))

    def map(self, batch: StreamBatch) -> Mapped:
        entries = self._entries
        try:
            found = [entries[headers] for headers in batch.headers]
        except KeyError:
            found = [self._entry(headers) for headers in batch.headers]
        kinds: list[Kind] = []
        cells: list[Cell] = []
        rest: list[Headers] = []
        if found:
            kinds, cells, rest = map(list, zip(*found, strict=True))
        prefix = f"{self._config.name}/{batch.partition}/"
        mapped = Mapped(kinds, cells, [f"{prefix}{position}" for position in batch.positions], [1] * len(kinds), rest)
        if any(rest) or self._key is not None:
            mapped.extras = self._extras(batch, rest)
        return mapped

    def kind(self, kind: Kind) -> Kind:
        if self._config.priority is not None or not kind.function:
            return kind
        return kind._replace(priority=self._own_priority(kind.function))

    def refresh(self) -> None:
        if self._config.priority is None:
            self._entries.clear()

    def _extras(self, batch: StreamBatch, rest: list[Headers]) -> dict[int, Extra]:
        keys = [""] * len(rest)
        if isinstance(self._key, FromRecord):
            keys = batch.keys
        elif self._key is not None:
            name, default = self._key.header, self._key.default
            keys = [dict(headers).get(name, default) for headers in batch.headers]
        return {
            index: Extra(key=key, headers=headers)
            for index, (key, headers) in enumerate(zip(keys, rest, strict=True))
            if key or headers
        }

    def _entry(self, headers: Headers) -> Entry:
        entry = self._entries.get(headers)
        if entry is None:
            entry = self._make(headers)
            if len(self._entries) >= _REMEMBERED:
                self._entries.clear()
            self._entries[headers] = entry
        return entry

    def _make(self, headers: Headers) -> Entry:
        values = dict(headers)
        config = self._config
        function = _value(config.function, values)
        kind = Kind(
            function, self._priority(function, values), _value(config.collection, values), _value(config.tenant, values)
        )
        rest = tuple(pair for pair in headers if pair[0] not in self._used)
        return Entry(kind, Cell(kind.function, kind.priority), rest)

    def _priority(self, function: str, values: dict[str, str]) -> int:
        if self._config.priority is not None:
            level = _value(self._config.priority, values)
            try:
                return int(Priority.parse(level))
            except InvalidRequest:
                return self._own_priority(function)
        return self._own_priority(function)

    def _own_priority(self, function: str) -> int:
        own = self._priority_of(function)
        return int(DEFAULT_PRIORITY) if own is None else own


class ParkedMapping:
    """For the delay service's due streams: each record says itself what it is, where it came from and how often it
    was tried."""

    def map(self, batch: StreamBatch) -> Mapped:
        mapped = Mapped([], [], [], [], [])
        for index, (headers, payload) in enumerate(zip(batch.headers, batch.payloads, strict=True)):
            try:
                item = parked_from(headers, payload)
            except (KeyError, ValueError):
                item = Parked("", f"{batch.partition}/{batch.positions[index]}", Kind(""), payload, 0.0, 0.0)
            mapped.kinds.append(item.kind)
            mapped.cells.append(Cell(item.kind.function, item.kind.priority))
            mapped.ids.append(item.id)
            mapped.attempts.append(item.attempt)
            mapped.headers.append(item.headers)
            mapped.due[index] = item.due
            mapped.parked[index] = item
            if item.key or item.headers or item.crashes or item.expires_at or item.progress:
                mapped.extras[index] = Extra(
                    item.key, item.headers, item.crashes, item.expires_at, item.crashes > 0, item.progress
                )
        return mapped

    def kind(self, kind: Kind) -> Kind:
        return kind

    def refresh(self) -> None:
        pass


def _value(field_: str | FromHeader | None, values: dict[str, str]) -> str:
    if isinstance(field_, FromHeader):
        return values.get(field_.header) or field_.default
    return field_ or ""
