"""Functions that fail: always while a file exists (an outage), or where the payload says so (poison)."""

from __future__ import annotations

import os
from pathlib import Path

from ..model.retry import Retry
from ..sdk.function import Function, function
from .functions import FUNCTIONS

#: The function of the outage fails for as long as this file is there.
OUTAGE_VARIABLE = "TAILRACE_BENCH_OUTAGE"
_OUTAGE = Path(os.environ.get(OUTAGE_VARIABLE, "/nonexistent"))


def _maybe(number: int) -> Function[[bool], object]:
    async def maybe(fail: bool = False) -> None:
        if fail:
            raise ValueError("poison")

    retry = Retry(max_attempts=3, backoff="list", delays=(1.0,))
    return function(name=f"maybe_{number:03}", priority="user_visible", retry=retry)(maybe)


globals().update({f"maybe_{number:03}": _maybe(number) for number in range(FUNCTIONS)})


@function(priority="user_visible")
async def bench_outage() -> None:
    """Fails while the file of the outage is there; its retry policy is the default one."""
    if _OUTAGE.exists():
        raise ConnectionError("the downstream is down")
