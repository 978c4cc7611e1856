"""The JSON Schema of a function's arguments, as a worker announces it, so that a gateway can check submissions.

It never asks for more than the worker does. Where a type hint brings code of its own (a validator that runs before the
type's, a model that takes fields under several names), the schema takes anything, and the worker decides.
"""

from __future__ import annotations

import json
from typing import Any

import pydantic
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue

#: Characters of a schema; a longer one is left out, and only the worker checks.
LONGEST = 16 << 10
_SAID = frozenset({"title", "description", "default", "examples", "deprecated"})


class _Announced(GenerateJsonSchema):
    """Pydantic's generator, with `{}` (anything) where the schema would ask for more than validation does."""

    def function_before_schema(self, schema: Any) -> JsonSchemaValue:
        return {}

    def function_wrap_schema(self, schema: Any) -> JsonSchemaValue:
        return {}

    def function_plain_schema(self, schema: Any) -> JsonSchemaValue:
        return {}

    def custom_error_schema(self, schema: Any) -> JsonSchemaValue:
        return {}

    def handle_invalid_for_json_schema(self, schema: Any, error_info: str) -> JsonSchemaValue:
        return {}

    def model_schema(self, schema: Any) -> JsonSchemaValue:
        config, fields = schema.get("config", {}), getattr(schema["cls"], "__pydantic_fields__", {})
        named_twice = config.get("populate_by_name") or config.get("validate_by_name")
        chosen = any(not isinstance(field.validation_alias, str | None) for field in fields.values())
        return {} if named_twice or chosen else super().model_schema(schema)


def argument_schema(adapter: pydantic.TypeAdapter[Any]) -> str:
    """The schema as JSON text; empty where none can be made, or one that is too long."""
    try:
        schema = adapter.json_schema(schema_generator=_Announced, mode="validation")
        text = json.dumps(_bare(schema), separators=(",", ":"), sort_keys=True)
    except Exception:  # pydantic has many; whatever it is, the worker checks all the same
        return ""
    return text if len(text) <= LONGEST else ""


def _bare(schema: Any, *, named: bool = False) -> Any:
    """The schema without texts for people (titles, descriptions). `named`: the keys are the user's own names."""
    if isinstance(schema, list):
        return [_bare(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: _bare(value, named=not named and key in ("properties", "$defs"))
        for key, value in schema.items()
        if named or key not in _SAID
    }
