"""The functions of the scenario `downstream`: three that call the same downstream."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from ..model.errors import Throttled
from ..sdk.context import Context
from ..sdk.function import Function, function
from .shared_downstream import Downstream

#: The name of the downstream, how many functions call it, and how long a call takes, seconds.
NAME, CALLERS, TAKES = "bench", 3, 0.02

_opened: list[Downstream] = []


def _caller(number: int) -> Function[..., object]:
    async def call(context: Context) -> None:
        if not _opened:
            _opened.append(Downstream(Path(os.environ["TAILRACE_BENCH_DOWNSTREAM"])))
        await asyncio.sleep(TAKES)
        if not _opened[0].call(context.attempt):
            raise Throttled(downstream=NAME)

    return function(name=f"call_{number}", priority="user_visible", downstreams=[NAME])(call)


globals().update({f"call_{number}": _caller(number) for number in range(CALLERS)})
