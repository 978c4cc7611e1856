"""Functions that two files in configs/tailers name, orders.yaml and inbox.yaml. Copy them to a folder my/tailers, then:

mkdir -p inbox && tailrace up --config my --functions examples/shop.py

(The others there read Kafka and a bucket, by functions of your own.)
"""

from __future__ import annotations

import tailrace


@tailrace.function(priority="interactive")
async def greet(name: str, ctx: tailrace.Context) -> str:
    """What is submitted by `tailrace submit greet name=Ann`."""
    return f"Hello {name}, this is attempt {ctx.attempt}"


@tailrace.function(retry=tailrace.Retry(max_attempts=20))
async def process_order(order: str, amount: int = 0) -> None:
    """One record of the stream `orders`."""
    if amount < 0:
        raise tailrace.Fatal(f"order {order} has a negative amount")


@tailrace.function(isolation="process")
def index_file(path: str, name: str, size: int, modified: float) -> dict[str, int]:
    """One file of the inbox: counts its words, in a process of its own."""
    with open(path, encoding="utf-8", errors="replace") as file:  # noqa: PTH123 - the shortest way to say it
        return {"bytes": size, "words": len(file.read().split())}
