"""Functions of the example: put yours in their place."""

from __future__ import annotations

import tailrace


@tailrace.function
async def greet(name: str) -> str:
    """Greets somebody."""
    return f"Hello, {name}!"
