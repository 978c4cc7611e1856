"""Calls whose data have named fields, so that two versions understand each other.

Records (dataclasses and named tuples, which are arrays elsewhere) and the arguments of a call travel as MessagePack
maps. A field that the receiver does not know is ignored, one that is missing takes its default: so a field that is
added later needs a default, and no field changes its name or meaning. All else is decoded strictly by the type hints.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
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
        """What is decoded instead of the records in a type hint."""
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
    if isinstance(value, msgspec.Struct):
        return {name: plain(getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return {name: plain(each) for name, each in zip(value._fields, value, strict=True)}
    if dataclasses.is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    return [plain(each) for each in value] if isinstance(value, list | tuple) else value


def made(value: Any) -> Any:
    """The inverse, of what was decoded by a form."""
    if isinstance(value, _Record):
        return _KINDS[type(value)](**{name: made(getattr(value, name)) for name in value.__struct_fields__})
    if type(value) is dict:
        return {key: made(each) for key, each in value.items()}
    return type(value)(map(made, value)) if type(value) in (list, tuple) else value


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


#: The class of the record that is made then.
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
    """The fields of a record, with what each is when nobody says."""
    if not dataclasses.is_dataclass(kind):
        return {name: kind._field_defaults.get(name, msgspec.NODEFAULT) for name in kind._fields}
    found: dict[str, Any] = {}
    for field in dataclasses.fields(kind):
        if field.default_factory is not dataclasses.MISSING:
            found[field.name] = msgspec.field(default_factory=field.default_factory)
        else:
            found[field.name] = msgspec.NODEFAULT if field.default is dataclasses.MISSING else field.default
    return found
