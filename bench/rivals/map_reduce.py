"""The functions of tailrace's side of a chord, which do the same as the rival's tasks."""

from __future__ import annotations

from ...sdk.function import function
from .work import gathered
from .work import part as work


@function(name="part", priority="eventual")
async def part(number: int) -> int:
    """Hands on its number."""
    return work(number)


@function(name="whole", priority="eventual")
async def whole(values: list[int]) -> None:
    """Gets the results of all parts."""
    gathered(values)


__all__ = ["part", "whole"]
