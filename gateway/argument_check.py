"""The check of a payload against the JSON Schema of arguments that a function's workers announced, by one of pydantic's
validators, which reads and checks the bytes in one step.

It knows the keywords that `sdk/argument_schema.py` makes; where a schema has others, anything fits.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pydantic_core
from pydantic_core import core_schema

from ..model.errors import InvalidPayload
from ..model.function_spec import FunctionSpec
from ..sdk.payload import explained

_BOUNDS = {"minimum": "ge", "maximum": "le", "exclusiveMinimum": "gt", "exclusiveMaximum": "lt"}
_NULL = {"type": "null"}
_NUMBERS: dict[str, Callable[..., Any]] = {"integer": core_schema.int_schema, "number": core_schema.float_schema}
_PLAIN: dict[str, Callable[[], Any]] = {
    "string": core_schema.str_schema,
    "boolean": core_schema.bool_schema,
    "null": core_schema.none_schema,
}


class ArgumentCheck:
    """The check of one function; `check` raises InvalidPayload naming the argument, what was expected and what came.

    Where workers of two versions run, a payload may fit either.
    """

    def __init__(self, spec: FunctionSpec) -> None:
        self._spec = spec
        self._names: list[str] = []
        self._validators = [_validator(text) for text in (spec.arguments, *spec.former) if text]
        if spec.arguments:
            self._names = list(json.loads(spec.arguments).get("properties", {}))

    def check(self, payload: bytes) -> None:
        """Checks a payload. A function that announced no schema takes anything."""
        if not self._spec.arguments:
            return
        problem: pydantic_core.ValidationError | None = None
        for validator in self._validators:
            try:
                validator.validate_json(payload or b"{}")
                return
            except pydantic_core.ValidationError as error:
                problem = problem or error
        assert problem is not None
        owner = f" (owner: {self._spec.owner})" if self._spec.owner else ""
        raise InvalidPayload(explained(self._spec.name, self._names, problem) + owner)


def is_schema(text: str) -> bool:
    """Whether a validator can be made of a text."""
    try:
        _validator(text)
    except Exception:  # of json, of pydantic, of ours: a worker sent no schema
        return False
    return True


def _validator(text: str) -> pydantic_core.SchemaValidator:
    schema = json.loads(text)
    definitions = {name: _core(each, name) for name, each in schema.get("$defs", {}).items()}
    whole = _core(schema, "")
    return pydantic_core.SchemaValidator(core_schema.definitions_schema(whole, list(definitions.values())))


def _core(schema: Any, ref: str) -> Any:
    made = _made(schema)
    return {**made, "ref": ref} if ref else made


def _made(schema: Any) -> Any:  # noqa: PLR0911 - one line for each kind
    if not isinstance(schema, Mapping) or not schema:
        return core_schema.any_schema()
    if "$ref" in schema:
        return core_schema.definition_reference_schema(str(schema["$ref"]).removeprefix("#/$defs/"))
    if "anyOf" in schema:
        kinds = [_made(each) for each in schema["anyOf"] if each != _NULL]
        made = kinds[0] if len(kinds) == 1 else core_schema.union_schema(kinds)
        return core_schema.nullable_schema(made) if _NULL in schema["anyOf"] else made
    if "enum" in schema and all(isinstance(each, str) for each in schema["enum"]):
        return core_schema.literal_schema(list(schema["enum"]))
    if "enum" in schema or "const" in schema or "format" in schema:
        return core_schema.any_schema()
    kind = schema.get("type")
    if kind in _NUMBERS:
        return _NUMBERS[kind](**{name: schema[key] for key, name in _BOUNDS.items() if key in schema})
    if kind in _PLAIN:
        return _PLAIN[kind]()
    if kind == "array" and "prefixItems" not in schema:
        return core_schema.list_schema(_made(schema.get("items")))
    if kind == "object":
        return _object(schema)
    return core_schema.any_schema()


def _object(schema: Mapping[str, Any]) -> Any:
    if "properties" not in schema and schema.get("additionalProperties") is not False:
        return core_schema.dict_schema(values_schema=_made(schema.get("additionalProperties")))
    required = set(schema.get("required", ()))
    fields = {
        name: core_schema.typed_dict_field(_made(each), required=name in required)
        for name, each in schema.get("properties", {}).items()
    }
    extra: Any = "forbid" if schema.get("additionalProperties") is False else "ignore"
    return core_schema.typed_dict_schema(fields, extra_behavior=extra)
