"""Calls whose data have named fields, so that two versions understand each other.

Records (dataclasses and named tuples, which are arrays elsewhere) and the arguments of a call travel as MessagePack
maps. A field that the receiver does not know is ignored, one that is missing takes its default: so a field that is
added later needs a default, and no field changes its name or meaning. All else is decoded strictly by the type hints.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import msgspec

from .stores import Signature


class NamedSignature(Signature):
    """The form of one method of a protocol on the wire, with named fields."""

    named = True

    def __init__(self, method: Callable[..., Any]) -> None:
        super().__init__(method)
        encode, decode_result = self.encode, self.decode_result
        self.encode = lambda value: encode(plain(value))
        self.decode_result = lambda data: made(decode_result(data))

    def form(self, hint: Any) -> Any:
        """The type to decode for a type hint, with a Struct for each record in it."""
        return form(hint)

    def bounded(self, arguments: Any) -> dict[str, Any]:
        """The arguments by name."""
        return {name: made(value) for name, value in msgspec.structs.asdict(arguments).items()}


@functools.cache
def named(method: Callable[..., Any]) -> NamedSignature:
    """The signature of a protocol's method, made once."""
    return NamedSignature(method)


def plain(value: Any) -> Any:
    """A value with its records as dictionaries."""
    kind: Any = type(value)
    if kind in _LEAVES:
        return value
    if names := _names(kind):
        values = value if isinstance(value, tuple) else [getattr(value, name) for name in names]
        return dict(zip(names, values if _flat(values) else map(plain, values), strict=True))
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    return [plain(each) for each in value] if isinstance(value, list | tuple) else value


def made(value: Any) -> Any:
    """The inverse of `plain`: a value with records, of one that was decoded by a `form`."""
    kind: Any = type(value)
    if kind in _LEAVES:
        return value
    if isinstance(value, _Record):
        values, record = msgspec.structs.astuple(value), _KINDS[kind]
        values = values if _flat(values) else tuple(map(made, values))
        return record(*values) if issubclass(record, tuple) else record(**dict(zip(_names(kind), values, strict=True)))
    if kind is dict:
        return {key: made(each) for key, each in value.items()}
    return kind(map(made, value)) if kind in (list, tuple) else value


#: Types without parts. Reports have thousands of such fields, so these are told apart first.
_LEAVES = frozenset({str, int, float, bool, bytes, type(None)})


def _flat(values: Iterable[Any]) -> bool:
    """Whether all values are without parts."""
    return _LEAVES.issuperset(map(type, values))


@functools.cache
def _names(kind: type[Any]) -> tuple[str, ...]:
    """The names of a record's fields; none: the class is not one of records."""
    if issubclass(kind, msgspec.Struct):
        return kind.__struct_fields__
    if issubclass(kind, tuple) and hasattr(kind, "_fields"):
        return tuple(kind._fields)
    return tuple(field.name for field in dataclasses.fields(kind)) if dataclasses.is_dataclass(kind) else ()


def form(hint: Any) -> Any:
    """A type hint with a Struct for each record in it."""
    if isinstance(hint, type) and (dataclasses.is_dataclass(hint) or hasattr(hint, "_fields")):
        return _record(hint)
    origin, parts = get_origin(hint), tuple(map(form, get_args(hint)))
    if origin in (Union, UnionType):
        return Union[parts]  # noqa: UP007 - of parts that are known when it runs
    return origin[parts] if origin is not None else hint


class _Record(msgspec.Struct):
    """The fields of a record as they were decoded, to be checked."""


#: The class of records that is made of each Struct.
_KINDS: dict[type[msgspec.Struct], type[Any]] = {}


@functools.cache
def _record(kind: type[Any]) -> type[msgspec.Struct]:
    hints = get_type_hints(kind)
    fields: list[Any] = []
    for name, default in _defaults(kind).items():
        fields.append((name, form(hints[name])) if default is msgspec.NODEFAULT else (name, form(hints[name]), default))
    record = msgspec.defstruct(kind.__name__, fields, bases=(_Record,), kw_only=True)
    _KINDS[record] = kind
    return record


def _defaults(kind: type[Any]) -> dict[str, Any]:
    """The fields of a record with their defaults; NODEFAULT: the field is required."""
    if not dataclasses.is_dataclass(kind):
        return {name: kind._field_defaults.get(name, msgspec.NODEFAULT) for name in kind._fields}
    found: dict[str, Any] = {}
    for field in dataclasses.fields(kind):
        if field.default_factory is not dataclasses.MISSING:
            found[field.name] = msgspec.field(default_factory=field.default_factory)
        else:
            found[field.name] = msgspec.NODEFAULT if field.default is dataclasses.MISSING else field.default
    return found
