"""The functions that the files in configs/ and in this folder name. With the configuration of a clone:

mkdir -p inbox && tailrace up --config configs --functions examples/shop.py
"""

from __future__ import annotations

import tailrace


@tailrace.function(priority="interactive")
async def greet(name: str, ctx: tailrace.Context) -> str:
    """A greeting, which configs/schedules.yaml runs in the morning; by hand: tailrace submit greet name=Ann."""
    return f"Hello {name}, this is attempt {ctx.attempt}"


@tailrace.function(retry=tailrace.Retry(max_attempts=20))
async def process_order(order: str, amount: int = 0) -> None:
    """Handles one record of the stream `orders`."""
    if amount < 0:
        raise tailrace.Fatal(f"order {order} has a negative amount")


@tailrace.function
async def process_payment(payment: str, amount: int = 0) -> None:
    """Handles one record of the Kafka topic of examples/payments.yaml."""
    if amount < 0:
        raise tailrace.Fatal(f"payment {payment} has a negative amount")


@tailrace.function
async def record_event(user: str, what: str) -> None:
    """Handles one line of an object of examples/events.yaml."""


@tailrace.function(isolation="process")
def index_file(path: str, name: str, size: int, modified: float) -> dict[str, int]:
    """Counts the words of one file of the inbox, in a process of its own."""
    with open(path, encoding="utf-8", errors="replace") as file:  # noqa: PTH123 - the shortest way to say it
        return {"bytes": size, "words": len(file.read().split())}
