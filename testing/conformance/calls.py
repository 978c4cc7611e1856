"""Python calls that a step takes: a count that does not depend on the machine or on what else it does."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from typing import Any


async def calls_of(step: Callable[[], Awaitable[Any]], tries: int = 25) -> int:
    """The fewest calls that this thread made in any of several runs of a step: other runs may have had other work to
    do."""
    found = []
    for _ in range(tries):
        count = 0

        def one(frame: Any, event: str, argument: Any) -> None:
            nonlocal count
            count += event in ("call", "c_call")

        before = sys.getprofile()
        sys.setprofile(one)
        try:
            await step()
        finally:
            sys.setprofile(before)
        found.append(count)
    return min(found)
