"""The functions of the scenario `jobs`: two stages that only hand on their argument."""

from __future__ import annotations

from ..sdk.function import function


@function(name="bench_first", priority="eventual")
async def bench_first(n: int) -> int:
    """The first stage: returns its argument."""
    return n


@function(name="bench_second", priority="eventual")
async def bench_second(n: int) -> int:
    """The second stage: returns its argument."""
    return n


__all__ = ["bench_first", "bench_second"]
