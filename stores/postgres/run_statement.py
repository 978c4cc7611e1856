"""The function that runs a statement: parts of an engine on PostgreSQL are given it instead of the server."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

#: Runs a statement in which "S." stands for the schema, with its arguments; the last argument names its purpose in
#: messages of a failure.
RunStatement = Callable[[str, Sequence[Any], str], Awaitable[list[tuple[Any, ...]]]]
