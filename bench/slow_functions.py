"""Functions with the names of the bench's no-ops that never end by themselves: items behind them keep waiting."""

from __future__ import annotations

import asyncio

from ..sdk.function import Function, function
from .functions import FUNCTIONS


def _slow(number: int) -> Function[[], object]:
    async def slow() -> None:
        await asyncio.Event().wait()

    return function(name=f"noop_{number:03}", priority="user_visible")(slow)


globals().update({f"noop_{number:03}": _slow(number) for number in range(FUNCTIONS)})
