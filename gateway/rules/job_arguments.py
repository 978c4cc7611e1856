"""The argument of a function that gets a parent's result: THE rule, by what its workers announced."""

from __future__ import annotations

import json

from ...model.did_you_mean import meant
from ...model.errors import InvalidRequest
from ...model.function_spec import FunctionSpec
from ...model.job import JobSpec


def argument_for(job: JobSpec, spec: FunctionSpec) -> str:
    """Its name; empty: the result is the whole payload. Raises InvalidRequest where nobody could know, and for a
    function that needs others besides."""
    if not spec.arguments:
        return job.argument
    schema = json.loads(spec.arguments)
    names, required = [*schema.get("properties", {})], schema.get("required", [])
    if job.argument and job.argument not in names and schema.get("additionalProperties") is not True:
        raise InvalidRequest(
            f"job {job.name!r}: {spec.name!r} has no argument {job.argument[:100]!r}: "
            f"{meant(job.argument[:100], names)}"
        )
    if not names and not job.argument:
        raise InvalidRequest(f"job {job.name!r}: {spec.name!r} takes no argument, so it cannot get a result")
    argument = job.argument or next(iter([*required, *names]))
    others = [name for name in required if name != argument]
    if others:
        raise InvalidRequest(
            f"job {job.name!r}: {spec.name!r} gets a result as {argument!r}, and needs {', '.join(others)} too: give "
            "them defaults, or let the result have them"
        )
    return argument
