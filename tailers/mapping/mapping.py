"""A source's record → the item to push: kind, id, attempt, key and headers.

There are two mappings: by configuration (constants and headers) and, for the delay service's due streams, by the parked
item in each record. Records with the same headers share one entry, so that the usual cost is one dictionary lookup an
item.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any, NamedTuple, Protocol

from ...model.demand import Cell
from ...model.parked import Parked, parked_from
from ...model.priority import DEFAULT_PRIORITY, Priority
from ...model.workload import Extra, Headers, Kind
from ...sdk.source import StreamBatch
from ..config import TailerConfig
from ..rules.expiry import Expiry, expires_at, expiry_of
from ..rules.urgency import level_of, rank_of, value_at
from .fields import fields_of
from .record_values import FromField, FromHeader, FromRecord, PriorityFrom, PriorityRules

#: Sets of headers remembered; forgotten whole when full, since headers that never repeat gain nothing.
_REMEMBERED = 65_536


class MappedHeaders(NamedTuple):
    """The mapping of one set of headers. `headers` are those that the mapping did not use; they travel with the
    item."""

    kind: Kind
    cell: Cell
    headers: Headers


@dataclass(slots=True)
class Mapped:
    """A mapped batch: parallel lists, and dictionaries by index for values that few items have.

    due      wall clock seconds before which an item must not start
    own      the kind of an item by its own priority, where it goes with the priority of another one
             (rules/priority_inheritance.py)
    unreadable   number of records in the batch, also of those not chosen since, whose priority or deadline cannot be
             read: they have the default
    parked   the parked item in a record, for items of the delay service
    """

    kinds: list[Kind]
    cells: list[Cell]
    ids: list[str]
    attempts: list[int]
    headers: list[Headers]
    extras: dict[int, Extra] = field(default_factory=dict)
    due: dict[int, float] = field(default_factory=dict)
    parked: dict[int, Parked] = field(default_factory=dict)
    own: dict[int, Kind] = field(default_factory=dict)
    unreadable: int = 0

    def kind(self, index: int) -> Kind:
        """The kind of an item by its own priority."""
        return self.own.get(index, self.kinds[index]) if self.own else self.kinds[index]

    def expires_at(self, index: int) -> float:
        """The wall clock second from which an item may not start; 0: it always may."""
        extra = self.extras.get(index)
        return 0.0 if extra is None else extra.expires_at

    def join(self, other: Mapped) -> None:
        """Appends the items of another batch."""
        begin = len(self.kinds)
        self.kinds += other.kinds
        self.cells += other.cells
        self.ids += other.ids
        self.attempts += other.attempts
        self.headers += other.headers
        self.extras.update({begin + index: extra for index, extra in other.extras.items()})
        self.due.update({begin + index: due for index, due in other.due.items()})
        self.parked.update({begin + index: item for index, item in other.parked.items()})
        self.own.update({begin + index: kind for index, kind in other.own.items()})
        self.unreadable += other.unreadable

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
            {places[old]: kind for old, kind in self.own.items() if old in places},
            self.unreadable,
        )


class Mapping(Protocol):
    """A mapping of a stream's records to items."""

    def map(self, batch: StreamBatch) -> Mapped:
        """Maps a batch; never fails. An item that names no function gets a kind whose function is empty."""

    def kind(self, kind: Kind) -> Kind:
        """The kind that an item has now whose kind was mapped earlier."""

    def refresh(self) -> None:
        """Forgets the entries that it remembers: a function's own priority may have changed."""


class FieldMapping:
    """The mapping by a tailer's configuration. `priority_of` returns a function's own priority, None while unknown."""

    def __init__(self, config: TailerConfig, priority_of: Callable[[str], int | None]) -> None:
        self._config = config
        self._priority_of = priority_of
        self._entries: dict[Headers, MappedHeaders] = {}
        self._highest = int(Priority.parse(config.highest_priority or 0))
        self._key = config.key
        self._expires = config.expires
        self._after = Expiry(0.0, config.expires) if isinstance(config.expires, float | int) else None
        rules = config.priority.rules if isinstance(config.priority, PriorityRules) else ()
        self._conditions = [rule.condition() for rule in rules]
        self._in_payload = _looks_into(config.priority)
        self._parses = self._in_payload or isinstance(config.expires, FromField)
        said: list[tuple[Any, Callable[[Any], object]]] = [(config.priority, level_of), (config.expires, expiry_of)]
        self._in_headers = [(one.header, reads) for one, reads in said if isinstance(one, FromHeader)]
        self._in_fields = [(_path(one), reads) for one, reads in said if isinstance(one, FromField)]
        self._strange: set[Headers] = set()  # of `_entries`, those whose level or deadline cannot be read
        self._ranked: dict[tuple[Kind, int], tuple[Kind, Cell]] = {}
        fields = (
            config.function,
            config.priority,
            config.collection,
            config.tenant,
            config.key,
            config.expires,
            config.overlap,
        )
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
        strange = (
            {at for at, headers in enumerate(batch.headers) if headers in self._strange} if self._strange else set()
        )
        if self._parses or self._expires is not None:
            self._look(batch, mapped, strange)
        mapped.unreadable = len(strange)
        return mapped

    def kind(self, kind: Kind) -> Kind:
        if self._config.priority is not None or not kind.function:
            return kind
        return kind._replace(priority=max(self._own_priority(kind.function), self._highest))

    def refresh(self) -> None:
        self._forget()

    def _forget(self) -> None:
        self._entries.clear()
        self._strange.clear()

    def _look(self, batch: StreamBatch, mapped: Mapped, strange: set[int]) -> None:
        """Sets priority and deadline of each record from its payload and headers. `strange` gets the indexes of records
        with values that cannot be read."""
        for index, (headers, payload) in enumerate(zip(batch.headers, batch.payloads, strict=True)):
            fields = fields_of(payload) if self._parses else None
            if self._in_fields and payload and self._is_strange(fields):
                strange.add(index)
            if self._in_payload:
                kind = mapped.kinds[index]
                rank = self._rank(kind.function, dict(headers), fields)
                if rank != kind.priority:
                    mapped.kinds[index], mapped.cells[index] = self._of_rank(kind, rank)
            if self._expires is None:
                continue
            expiry = self._after or self._expiry(headers, fields)
            at = expires_at(expiry, batch.times[index]) if expiry is not None else 0.0
            if at:
                mapped.extras.setdefault(index, Extra()).expires_at = at

    def _is_strange(self, fields: Any) -> bool:
        """Whether a payload, or a field of it, cannot be read; a field that is missing can."""
        return fields is None or any(_unreadable(value_at(fields, path), reads) for path, reads in self._in_fields)

    def _of_rank(self, kind: Kind, rank: int) -> tuple[Kind, Cell]:
        found = self._ranked.get((kind, rank))
        if found is None:
            if len(self._ranked) >= _REMEMBERED:
                self._ranked.clear()
            found = self._ranked[kind, rank] = kind._replace(priority=rank), Cell(kind.function, rank)
        return found

    def _expiry(self, headers: Headers, fields: Any) -> Expiry | None:
        """The deadline in a record, else the default; None: it has none."""
        source = self._expires
        assert isinstance(source, FromHeader | FromField)
        value = dict(headers).get(source.header) if isinstance(source, FromHeader) else value_at(fields, _path(source))
        said = None if value is None else expiry_of(value)
        return said if said is not None or not source.default else expiry_of(source.default)

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

    def _entry(self, headers: Headers) -> MappedHeaders:
        entry = self._entries.get(headers)
        if entry is None:
            entry = self._make(headers)
            if len(self._entries) >= _REMEMBERED:
                self._forget()
            self._entries[headers] = entry
            values = dict(headers)
            if any(_unreadable(values.get(name), reads) for name, reads in self._in_headers):
                self._strange.add(headers)
        return entry

    def _make(self, headers: Headers) -> MappedHeaders:
        values = dict(headers)
        config = self._config
        function = _value(config.function, values)
        kind = Kind(
            function, self._rank(function, values), _value(config.collection, values), _value(config.tenant, values)
        )
        rest = tuple(pair for pair in headers if pair[0] not in self._used)
        return MappedHeaders(kind, Cell(kind.function, kind.priority), rest)

    def _rank(self, function: str, values: dict[str, str], fields: Any = None) -> int:
        """The priority of a record with these headers and, where its payload was parsed, these fields."""
        source = self._config.priority
        rank: int | None = None
        match source:
            case None:
                pass
            case str():
                rank = level_of(source)
            case FromHeader():
                rank = level_of(_value(source, values))
            case FromField():
                rank = level_of(value_at(fields, _path(source)))
            case PriorityRules():
                rank = rank_of(self._conditions, values, fields)
        if rank is None and isinstance(source, FromField | PriorityRules):
            rank = level_of(source.default)
        return max(self._own_priority(function) if rank is None else rank, self._highest)

    def _own_priority(self, function: str) -> int:
        own = self._priority_of(function)
        return int(DEFAULT_PRIORITY) if own is None else own


class ParkedMapping:
    """The mapping of the delay service's due streams: each record holds a parked item, with its kind, its origin and
    its number of attempts."""

    def __init__(self) -> None:
        self._cells: dict[tuple[str, int], Cell] = {}

    def map(self, batch: StreamBatch) -> Mapped:
        items = list(map(_parked, batch.headers, batch.payloads, repeat(batch.partition), batch.positions))
        kinds = [item.kind for item in items]
        return Mapped(
            kinds,
            self._cells_of([kind[:2] for kind in kinds]),
            [item.id for item in items],
            [item.attempt for item in items],
            [item.headers for item in items],
            {
                index: Extra(item.key, item.headers, item.crashes, item.expires_at, item.crashes > 0, item.progress)
                for index, item in enumerate(items)
                if item.key or item.headers or item.crashes or item.expires_at or item.progress
            },
            {index: item.due for index, item in enumerate(items)},
            dict(enumerate(items)),
        )

    def _cells_of(self, names: Sequence[tuple[str, int]]) -> list[Cell]:
        """The cells of these names, which are few and repeat: each is made once."""
        cells = self._cells
        try:
            return [cells[name] for name in names]
        except KeyError:
            if len(cells) >= _REMEMBERED:
                cells.clear()
            cells.update({name: Cell(*name) for name in names})
            return [cells[name] for name in names]

    def kind(self, kind: Kind) -> Kind:
        return kind

    def refresh(self) -> None:
        pass


def _parked(headers: Headers, payload: bytes, partition: str, position: int) -> Parked:
    """The parked item in a record of a due stream; for an unreadable record an item that no worker runs."""
    try:
        return parked_from(headers, payload)
    except (KeyError, ValueError):
        return Parked("", f"{partition}/{position}", Kind(""), payload, 0.0, 0.0)


def _looks_into(priority: PriorityFrom | None) -> bool:
    """Whether a priority depends on fields of the payload."""
    if isinstance(priority, PriorityRules):
        return any(rule.field for rule in priority.rules)
    return isinstance(priority, FromField)


def _unreadable(value: Any, reads: Callable[[Any], object]) -> bool:
    """Whether a value is there, but cannot be read."""
    return value is not None and value != "" and reads(value) is None


def _path(source: FromField) -> list[str]:
    return source.field.split(".")


def _value(field_: str | FromHeader | None, values: dict[str, str]) -> str:
    if isinstance(field_, FromHeader):
        return values.get(field_.header) or field_.default
    return field_ or ""
