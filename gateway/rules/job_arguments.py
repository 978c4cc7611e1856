"""The argument of a function that gets a parent's result, or an event: THE rule, by the schema that workers
announced."""

from __future__ import annotations

import json

from ...model.did_you_mean import meant
from ...model.errors import InvalidRequest
from ...model.function_spec import FunctionSpec


def argument_for(what: str, wanted: str, spec: FunctionSpec) -> str:
    """The name of the argument; empty: the result is the whole payload. `wanted`: the name that the user gave, if any;
    `what`: the job, for messages. Raises InvalidRequest for an unknown name, and for a function that takes no argument
    or needs further ones."""
    if not spec.arguments:
        return wanted
    schema = json.loads(spec.arguments)
    names, required = [*schema.get("properties", {})], schema.get("required", [])
    if wanted and wanted not in names and schema.get("additionalProperties") is not True:
        raise InvalidRequest(f"{what}: {spec.name!r} has no argument {wanted[:100]!r}: {meant(wanted[:100], names)}")
    if not names and not wanted:
        raise InvalidRequest(f"{what}: {spec.name!r} takes no argument, and gets one: give it one")
    argument = wanted or next(iter([*required, *names]))
    others = [name for name in required if name != argument]
    if others:
        raise InvalidRequest(
            f"{what}: {spec.name!r} gets {argument!r} alone, and needs {', '.join(others)} too: give them "
            f"defaults, or take them out of {argument!r}"
        )
    return argument
