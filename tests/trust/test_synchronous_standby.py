"""A PostgreSQL with a synchronous standby: what was confirmed is there after the standby's promotion."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import psycopg
import pytest
from scenes.lone_node import node
from servers.standby import WithStandby

import tailrace
from tailrace.assembly.node import Node
from tailrace.model.function_spec import FunctionSpec
from tailrace.wire.gateway import GatewayClient

#: Seconds within which the old way gave a spool up: two tries, the second of which wrote nothing.
GIVEN_UP_WITHIN = 5.0


@asynccontextmanager
async def node_on(url: str, folder: Path) -> AsyncIterator[Node]:
    """A node whose queue is at this address."""
    config = folder / "config"
    config.mkdir(exist_ok=True)
    (config / "stores.yaml").write_text(json.dumps({"queue": {"engine": "postgres", "url": url, "timeout": 1.0}}))
    (config / "gateway.yaml").write_text("store_patience: 500ms\n")
    async with node(folder, config) as running:
        async with GatewayClient(running.addresses["gateway"]) as gateway:
            await gateway.register_functions("test", [FunctionSpec("work")])
        yield running


async def spooled(running: Node) -> int:
    """Number of workloads in the node's spool."""
    async with GatewayClient(running.addresses["gateway"]) as gateway:
        return (await gateway.overview()).spool.items


async def emptied(running: Node, within: float) -> None:
    """Waits until nothing is spooled."""
    async with asyncio.timeout(within):
        while await spooled(running):
            await asyncio.sleep(0.05)


async def promoted(with_standby: WithStandby) -> None:
    """Kills the primary, and makes the standby, which is started anew, the primary."""
    with_standby.primary.program.kill()
    await asyncio.to_thread(with_standby.program.start)
    await asyncio.to_thread(with_standby.promote)


async def states(client: tailrace.AsyncClient, handles: Sequence[tailrace.AsyncHandle]) -> list[str]:
    """The state of each workload, as anybody is told."""
    return ["unknown" if each is None else each.state for each in await client.status_many([h.id for h in handles])]


@pytest.mark.trust(point=4)
async def test_what_was_accepted_while_the_synchronous_standby_was_away_is_there_after_its_promotion(
    with_standby: WithStandby, tmp_path: Path
) -> None:
    async with (
        node_on(with_standby.either, tmp_path) as running,
        tailrace.AsyncClient(running.addresses["gateway"]) as client,
    ):
        # Given a primary that confirms nothing without its standby, which is away
        first = await client.submit("work")
        await asyncio.to_thread(with_standby.wait_for_it)
        with_standby.program.kill()
        # When workloads are accepted, and the primary dies after a while
        handles = [first, *await client.submit_many(tailrace.Call("work", number=number) for number in range(60))]
        with contextlib.suppress(TimeoutError):
            await emptied(running, GIVEN_UP_WITHIN)
        await promoted(with_standby)
        # Then every one of them is known where the standby is the primary now
        await emptied(running, 30)
        assert await states(client, handles) == ["new"] * 61
    with psycopg.connect(with_standby.address) as connection:
        assert connection.execute("SELECT count(*) FROM tailrace.tasks").fetchone() == (61,)


@pytest.mark.trust(point=4)
async def test_a_wait_for_the_standby_that_an_operator_cuts_off_confirms_nothing(
    with_standby: WithStandby, tmp_path: Path
) -> None:
    async with (
        node_on(with_standby.either, tmp_path) as running,
        tailrace.AsyncClient(running.addresses["gateway"]) as client,
    ):
        # Given a primary that waits for a standby that is away
        first = await client.submit("work")
        await asyncio.to_thread(with_standby.wait_for_it)
        with_standby.program.kill()
        # When an operator cuts off whatever waits for it, while workloads are submitted
        cutting = asyncio.create_task(cut_off_waits(with_standby))
        handles = [first, *[await client.submit("work", number=number) for number in range(5)]]
        await asyncio.sleep(1)
        cutting.cancel()
        await promoted(with_standby)
        # Then what was accepted is known after the promotion
        await emptied(running, 30)
        assert await states(client, handles) == ["new"] * 6


async def cut_off_waits(with_standby: WithStandby) -> None:
    """Cuts off waits for the standby, again and again."""
    async with await psycopg.AsyncConnection.connect(with_standby.primary.address, autocommit=True) as connection:
        while True:
            await connection.execute("SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
            await asyncio.sleep(0.02)


@pytest.mark.trust(point=4)
async def test_a_cancellation_that_was_not_answered_is_confirmed_when_the_standby_has_it(
    with_standby: WithStandby, tmp_path: Path
) -> None:
    async with (
        node_on(with_standby.either, tmp_path) as running,
        tailrace.AsyncClient(running.addresses["gateway"]) as client,
    ):
        # Given a workload that waits, and a standby that is away
        handle = await client.submit("work")
        await asyncio.to_thread(with_standby.wait_for_it)
        with_standby.program.kill()
        # When it is cancelled, once more after the first call was not answered
        answers = [await confirmed(handle.cancel) for _ in range(3)]
        await promoted(with_standby)
        # Then it was not said to be cancelled while the standby did not know of it
        assert (True in answers) == (await states(client, [handle]) == ["cancelled"])


async def confirmed(call: Callable[[], Awaitable[object]]) -> bool:
    """Whether a call was answered in time, and not refused."""
    try:
        async with asyncio.timeout(1.5):
            await call()
    except (TimeoutError, tailrace.TailraceError):
        return False
    return True
