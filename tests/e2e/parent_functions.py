"""Functions that submit others and wait for them."""

from __future__ import annotations

import asyncio
import os

import tailrace

GATEWAY = os.environ.get("TAILRACE_TEST_GATEWAY", "")


def gateway() -> str:
    with open(GATEWAY) as file:
        return file.read()


@tailrace.function
async def child(n: int, seconds: float = 0.0) -> int:
    await asyncio.sleep(seconds)
    return n * 2


@tailrace.function
def child_plain(n: int) -> int:
    return n * 2


@tailrace.function
async def parent(n: int, of: str = "child") -> int:
    async with tailrace.AsyncClient(gateway()) as client:
        return int(await (await client.submit(of, n=n)).result()) + 1


@tailrace.function
async def parent_noted(n: int, note: str) -> int:
    """Says that it began; its child takes a while."""
    with open(note, "a") as file:
        file.write("began\n")
    async with tailrace.AsyncClient(gateway()) as client:
        return int(await (await client.submit("child", n=n, seconds=0.02)).result()) + 1


@tailrace.function
async def parent_of_several(n: int) -> list[int]:
    async with tailrace.AsyncClient(gateway()) as client:
        handles = await client.submit_many([tailrace.Call(child, number) for number in range(n)])
        return list(await asyncio.gather(*(handle.result() for handle in handles)))


@tailrace.function
def parent_plain(n: int) -> int:
    with tailrace.Client(gateway()) as client:
        return int(client.submit("child_plain", n=n).result()) + 1


@tailrace.function(retry=tailrace.Retry(max_attempts=1))
async def descends(depth: int) -> int:
    """Waits for itself, one deeper, as often as asked."""
    if not depth:
        return 0
    async with tailrace.AsyncClient(gateway()) as client:
        handle = await client.submit("descends", depth=depth - 1)
        try:
            return int(await handle.result()) + 1
        except tailrace.Throttled as error:
            raise tailrace.Fatal(error.reason) from None


@tailrace.function(retry=tailrace.Retry(max_attempts=1))
async def blocks_its_loop(n: int) -> int:
    with tailrace.Client(gateway()) as client:
        return int(client.submit("child", n=n).result())


@tailrace.function(isolation="process", retry=tailrace.Retry(max_attempts=1))
def parent_in_process(n: int) -> int:
    with tailrace.Client(gateway()) as client:
        return int(client.submit("child", n=n).result())


@tailrace.function
async def parent_of_late(ctx: tailrace.Context, note: str, after: str) -> list[int]:
    """Notes where it is, waits for an item that comes late, and notes what became of it meanwhile."""
    async with tailrace.AsyncClient(gateway()) as client:
        handle = await client.submit("child", n=1, delay=after, dedupe_key=f"late {ctx.id}")
        with open(note, "a") as file:
            file.write(f"{ctx.attempt}\n")
        await handle.result()
    return [ctx.attempt, ctx.crashes]


@tailrace.function
def parent_of_late_plain(ctx: tailrace.Context, note: str, after: str) -> list[int]:
    with tailrace.Client(gateway()) as client:
        handle = client.submit("child", n=1, delay=after, dedupe_key=f"late {ctx.id}")
        with open(note, "a") as file:
            file.write(f"{ctx.attempt}\n")
        handle.result()
    return [ctx.attempt, ctx.crashes]


@tailrace.function(retry=tailrace.Retry(max_crashes=1))
async def ends_its_process() -> None:
    os._exit(3)


@tailrace.function(timeout="1s", retry=tailrace.Retry(max_attempts=1))
async def waits_without_end() -> None:
    async with tailrace.AsyncClient(gateway()) as client:
        await (await client.submit("child", n=1, delay="1h")).result()
