"""Payloads: JSON bytes ↔ keyword arguments, and return values → JSON bytes.

A payload is a JSON object of keyword arguments; empty means none. A function whose single parameter is annotated
`bytes` gets the payload as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NotRequired, Protocol, Required

import msgspec
import pydantic
import pydantic_core
from typing_extensions import TypedDict  # pydantic asks for it below Python 3.12, and brings it

from ..model.did_you_mean import meant
from ..model.errors import InvalidPayload, Misfit
from ..model.plain_text import plain
from .argument_schema import argument_schema

#: Bounds of an error message: characters of a value shown, errors listed, characters in all.
SHOWN_VALUE = 80
SHOWN_ERRORS = 3
MESSAGE_LENGTH = 600

_strict = msgspec.json.Decoder().decode
_typed_dict: Any = TypedDict  # made from a function's hints, which no type checker can follow
_EXPECTED = ("Input should be ", "Value error, ", "Assertion failed, ")


class Arguments(Protocol):
    """The arguments of one function: how its payloads are read and written. `schema` is the JSON Schema of its
    arguments; empty: any payload may fit."""

    schema: str

    def decode(self, payload: bytes) -> dict[str, Any]:
        """The keyword arguments. Raises InvalidPayload saying which argument, what was expected and what came."""

    def encode(self, arguments: Mapping[str, Any]) -> bytes:
        """The payload. Raises InvalidPayload for arguments that do not fit."""


class Declared(Protocol):
    """The part of a declared function that is needed here."""

    @property
    def arguments(self) -> Arguments: ...


class RawArguments:
    """One parameter that takes the payload's bytes untouched."""

    def __init__(self, function: str, parameter: str, optional: bool) -> None:
        self.schema = ""
        self._function = function
        self._parameter = parameter
        self._optional = optional

    def decode(self, payload: bytes) -> dict[str, Any]:
        """The payload under its parameter's name."""
        return {} if self._optional and not payload else {self._parameter: payload}

    def encode(self, arguments: Mapping[str, Any]) -> bytes:
        """The bytes given for the parameter. Raises InvalidPayload for anything else."""
        unknown = arguments.keys() - {self._parameter}
        value = arguments.get(self._parameter, b"" if self._optional else None)
        if unknown or not isinstance(value, bytes | bytearray | memoryview):
            raise InvalidPayload(
                f"{self._function}: expected {self._parameter}=bytes and nothing else, got {_shown(dict(arguments))}"
            )
        return bytes(value)


class TypedArguments:
    """Arguments checked against type hints. `fields` maps each name to its hint and whether it is required;
    `open_ended` allows others (the function takes **kwargs)."""

    def __init__(self, function: str, fields: Mapping[str, tuple[Any, bool]], open_ended: bool) -> None:
        self._function = function
        self._names = list(fields)
        shape = _typed_dict(
            "Arguments",
            {name: Required[hint] if required else NotRequired[hint] for name, (hint, required) in fields.items()},
        )
        shape.__pydantic_config__ = pydantic.ConfigDict(
            extra="allow" if open_ended else "forbid", arbitrary_types_allowed=False
        )
        adapter: pydantic.TypeAdapter[dict[str, Any]] = pydantic.TypeAdapter(shape)
        self.schema = argument_schema(adapter)
        self._validate = adapter.validator.validate_json
        self._empty = not any(required for _, required in fields.values())

    def decode(self, payload: bytes) -> dict[str, Any]:
        """The keyword arguments, validated from JSON in one step."""
        if not payload and self._empty:
            return {}
        try:
            arguments: dict[str, Any] = self._validate(payload or b"{}")
        except pydantic_core.ValidationError as error:
            raise Misfit(explained(self._function, self._names, error)) from None
        return arguments

    def encode(self, arguments: Mapping[str, Any]) -> bytes:
        """JSON of the arguments, checked the way the worker will check it."""
        payload = _to_json(dict(arguments), f"{self._function}: the arguments")
        try:
            self.decode(payload)
        except Misfit as error:  # of a caller, who may be a function itself
            raise InvalidPayload(str(error)) from None
        return payload if arguments else b""


def explained(function: str, names: Sequence[str], error: pydantic_core.ValidationError) -> str:
    """The message for a payload that does not fit: which argument, expected what, got what. `names`: the arguments."""
    problems = error.errors(include_url=False, include_context=False)
    said = [_problem(names, problem) for problem in problems[:SHOWN_ERRORS]]
    if len(problems) > SHOWN_ERRORS:
        said.append(f"and {len(problems) - SHOWN_ERRORS} more")
    return _bounded(f"{function}: {'; '.join(said)}")


def _problem(names: Sequence[str], problem: Any) -> str:
    kind, where, value = problem["type"], problem["loc"], problem["input"]
    if kind == "json_invalid":
        return f"the payload is not JSON ({problem['msg'].removeprefix('Invalid JSON: ')})"
    if not where:
        return f"the payload must be a JSON object of arguments, got {_shown(value)}"
    name = ".".join(map(str, where))
    if kind == "missing":
        return f"argument {name!r} is missing"
    if kind == "extra_forbidden":
        return f"unknown argument {name[:SHOWN_VALUE]!r} ({meant(name, names)})"
    expected = str(problem["msg"])
    for prefix in _EXPECTED:
        expected = expected.removeprefix(prefix)
    return f"argument {name[:SHOWN_VALUE]!r}: expected {expected}, got {_shown(value)}"


def encode_arguments(function: Declared | None, arguments: Mapping[str, Any]) -> bytes:
    """The payload of a submission. With the declared function its type hints are checked here and now; by name only
    (None), the worker checks. Raises InvalidPayload."""
    if function is not None:
        return function.arguments.encode(arguments)
    return _to_json(dict(arguments), "the arguments") if arguments else b""


def encode_result(value: Any) -> bytes:
    """A return value as JSON; None is no bytes. Raises InvalidPayload when it cannot be written as JSON."""
    if value is None:
        return b""
    way = ". Return plain data or a pydantic model, or declare the function with results=False; a redrive runs it"
    text = _to_json(value, "the return value", f"{way} once more")
    if b"NaN" in text or b"Infinity" in text:  # as a rule in a text, where it may be
        try:
            _strict(text)
        except msgspec.DecodeError:
            raise InvalidPayload(
                "the return value has a number that JSON does not have (NaN or infinity): return None, a text or a "
                "finite number for it; a redrive runs it once more"
            ) from None
    return text


def _to_json(value: Any, what: str, way: str = "") -> bytes:
    try:
        return pydantic_core.to_json(value)
    except MemoryError:
        raise
    except Exception as error:
        first = plain(error, MESSAGE_LENGTH).strip().partition("\n")[0] or type(error).__name__
        raise InvalidPayload(_bounded(f"{what} cannot be written as JSON: {first}", way)) from None


def _shown(value: Any) -> str:
    try:
        text = plain(repr(value), SHOWN_VALUE + 1)
    except Exception:
        text = "…"
    return f"{text} ({type(value).__name__})"


def _bounded(text: str, end: str = "") -> str:
    most = MESSAGE_LENGTH - len(end)
    return f"{text if len(text) <= most else f'{text[: most - 1]}…'}{end}"
