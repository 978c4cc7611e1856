"""The JSON Schema of a tailer's file: the model's own, with the options of each built-in kind under `source`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .config import TailerConfig
from .registry import BUILT_IN, INTERNAL, kind_of

#: The schema that comes with the package: made from all built-in kinds, whichever extras are installed here.
PACKAGED = Path(__file__).resolve().parents[1] / "configs" / "schema" / "tailer.json"


def tailer_schema() -> dict[str, Any]:
    """The schema as plain data; durations and sizes may also be text ("30s", "16MiB")."""
    schema = TailerConfig.model_json_schema()
    choices = []
    for name in sorted(BUILT_IN.keys() - INTERNAL):
        kind = kind_of(name)
        options = kind.options.model_json_schema(ref_template="#/$defs/{model}")
        schema.setdefault("$defs", {}).update(options.pop("$defs", {}))
        options["title"] = f"{name} source"
        options["properties"] = {"kind": {"const": name, "description": kind.description}, **options["properties"]}
        options["required"] = ["kind", *options.get("required", [])]
        choices.append(options)
    schema["properties"]["source"] = {
        "description": "`kind` and that kind's own options",
        "anyOf": [*choices, {"type": "object", "properties": {"kind": {"type": "string"}}, "required": ["kind"]}],
    }
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "A tailrace tailer"}
