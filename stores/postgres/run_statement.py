"""The running of a statement: what parts of an engine on PostgreSQL are given instead of its server."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

#: Runs a statement in which S. stands for the schema, with its arguments; what it is about, for who reads of a failure.
RunStatement = Callable[[str, Sequence[Any], str], Awaitable[list[tuple[Any, ...]]]]
