"""Dead letters have a bound by function and tenant. Beyond it nothing is dropped: what fails for good stays in its
source, others go on, and so does it when there is room."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from scenes import commands

import tailrace
from tailrace.assembly.platform import Platform
from tailrace.model.dead_letter import LetterFilter
from tailrace.stores.log.log import Record
from tailrace.stores.remote import RemoteLog
from tailrace.wire.gateway import GatewayClient

pytestmark = pytest.mark.trust(point=14)

FUNCTIONS = """
import os
import pathlib
import tailrace

def failing():
    if not pathlib.Path(os.environ["TAILRACE_TEST_MENDED"]).exists():
        raise tailrace.Fatal("broken")

@tailrace.function
async def queued(n: int) -> int:
    failing()
    return n

@tailrace.function
async def streamed(n: int) -> None:
    failing()

@tailrace.function
async def add(a: int, b: int) -> int:
    return a + b
"""
BOUND, ITEMS = 5, 20
BOTH = ("queued", "streamed")


class Scene:
    """A node whose dead letters are bounded, and its data."""

    def __init__(self, folder: Path, stores: str = "") -> None:
        (folder / "functions.py").write_text(FUNCTIONS)
        (folder / "config").mkdir()
        (folder / "config" / "stores.yaml").write_text(f"max_dead_letters: {BOUND}\n{stores}")
        (folder / "orders.yaml").write_text("name: orders\nsource: {kind: log, stream: orders}\nfunction: streamed\n")
        self._folder = folder
        self.mended = folder / "mended"
        self.ids: list[str] = []

    async def start(self) -> None:
        folder = self._folder
        self.platform = Platform(
            folder / "data",
            [str(folder / "functions.py")],
            folder / "config",
            [folder / "orders.yaml"],
            heartbeat=0.3,
            environment={"TAILRACE_TEST_MENDED": str(self.mended)},
            worker={"slots": 4, "executors": 1},
        )
        await self.platform.start()
        self.gateway = GatewayClient(self.platform.gateway_address)
        self.client = tailrace.AsyncClient(self.platform.gateway_address)

    async def stop(self) -> None:
        await self.client.close()
        await self.gateway.close()
        await self.platform.stop()

    async def letters(self, function: str) -> int:
        return len((await self.gateway.dead_letters(LetterFilter(function=function))).letters)

    async def states(self) -> list[str]:
        return [(await self.client.status(id)).state for id in self.ids]

    async def are(self, letters: int, dead: int) -> bool:
        """Whether each function has so many letters, and so many of the queue's items are dead."""
        counts = [await self.letters(function) for function in BOTH]
        return counts == [letters, letters] and (await self.states()).count("fatal_failure") == dead


async def until(true: Callable[[], Awaitable[bool]], what: str) -> None:
    try:
        async with asyncio.timeout(90):
            while not await true():
                await asyncio.sleep(0.1)
    except TimeoutError:
        pytest.fail(f"{what}: not within 90 s")


async def story(scene: Scene) -> None:
    async with RemoteLog(scene.platform.store_address) as log:
        # When twenty items of a queue and of a stream fail for good, and five letters of each are kept
        scene.ids += [(await scene.client.submit("queued", n=n)).id for n in range(ITEMS)]
        await log.append("orders", 0, [Record(b'{"n": %d}' % n) for n in range(ITEMS)])
        await until(lambda: scene.are(BOUND, BOUND), "the letters fill their rooms")

        # Then an alert names each function, the number, the bound, and what to do
        async def told() -> bool:
            said = (await asyncio.to_thread(commands.tailrace, "alerts", "--gateway", scene.gateway.address)).stdout
            words = ("letters_full", "5 dead letters, at most 5", "max_dead_letters", "dead redrive --function queued")
            return all(word in said for word in (*words, "dead purge --function streamed"))

        await until(told, "an alert says so")
        # And others go on: another function, and another tenant of this one
        assert await (await scene.client.submit("add", a=1, b=2)).result(timeout=30) == 3
        other = await scene.client.submit("queued", n=1, tenant="acme")
        await until(lambda: has(scene, other.id), "the other tenant's letter is kept")
        # And what waits is in its source, and was charged no attempt
        assert (await scene.states()).count("fatal_failure") == BOUND
        waiting = [status for id in scene.ids if (status := await scene.client.status(id)).state != "fatal_failure"]
        assert {status.attempts for status in waiting} <= {0}, waiting

        # When some are given up, Then as many more come
        await scene.gateway.purge(LetterFilter(ids=(other.id,)))
        for function in BOTH:
            assert await scene.gateway.purge(LetterFilter(function=function), BOUND) == {function: BOUND}
        await until(lambda: scene.are(BOUND, 2 * BOUND), "five more come")


async def has(scene: Scene, id: str) -> bool:
    return bool((await scene.gateway.dead_letters(LetterFilter(ids=(id,)))).letters)


async def end(scene: Scene) -> None:
    # When the functions are mended and the letters are run again
    scene.mended.touch()
    for function in BOTH:
        await scene.gateway.redrive(LetterFilter(function=function))

    # Then all that waited goes on by itself, and nothing is lost
    async def over() -> bool:
        states = await scene.states()
        return await scene.letters("queued") == 0 and states.count("success") == ITEMS - 2 * BOUND

    await until(over, "what waited in the queue succeeds")

    async def passed() -> bool:
        [audit] = await scene.gateway.audit("orders")
        return audit.good and audit.counts == {"succeeded": ITEMS - 2 * BOUND, "dead": 2 * BOUND}

    await until(passed, "what waited in the stream succeeds")
    assert not [each for each in (await scene.gateway.overview()).alerts if each.code == "letters_full"]


#: Mark of the engines that need a server.
LONG = pytest.mark.long(minutes=0.6)
STORES = """
durability: relaxed
queue: {engine: %(engine)s, url: "%(url)s"%(more)s}
state: {engine: %(engine)s, url: "%(url)s"%(more)s}
"""


@pytest.mark.parametrize("engine", ["sqlite", *(pytest.param(each, marks=LONG) for each in ("postgres", "redis"))])
async def test_letters_beyond_their_bound_wait_in_their_source(
    engine: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    # Given a node that keeps five letters of each function and tenant
    there = {"engine": engine, "url": "", "more": ""}
    if engine == "postgres":
        there["url"] = request.getfixturevalue("postgres_server")
        there["more"] = f", schema: {request.getfixturevalue('postgres_schema')}"
    elif engine == "redis":
        there["url"] = request.getfixturevalue("own_redis")().address
    scene = Scene(tmp_path, STORES % there if there["url"] else "")
    await scene.start()
    try:
        await story(scene)
        # And when the node starts anew in between
        await scene.stop()
        await scene.start()
        assert await scene.are(BOUND, 2 * BOUND)
        await end(scene)
    finally:
        await scene.stop()


async def test_a_bound_of_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "stores.yaml").write_text("max_dead_letters: 0\n")
    told = commands.tailrace("node", "--config", str(tmp_path), "--data", str(tmp_path / "data"), timeout=40)
    assert told.returncode
    for words in ("stores.yaml", "max_dead_letters", "expected 1 or more", "100,000"):
        assert words in told.stderr, told.stderr
    assert "Traceback" not in told.stderr


async def test_a_bound_below_what_there_is_drops_nothing(tmp_path: Path) -> None:
    # Given a node with as many letters as it keeps
    scene = Scene(tmp_path)
    await scene.start()
    try:
        scene.ids += [(await scene.client.submit("queued", n=n)).id for n in range(BOUND)]

        async def dead() -> bool:
            return await scene.letters("queued") == BOUND

        await until(dead, "they die")
        # When it begins anew with a lower bound, and one more fails
        await scene.stop()
        stores = tmp_path / "config" / "stores.yaml"
        stores.write_text(stores.read_text().replace(f"max_dead_letters: {BOUND}", "max_dead_letters: 2"))
        await scene.start()
        more = await scene.client.submit("queued", n=1)

        async def waits() -> bool:
            return "waits for room" in str(await scene.client.status(more.id))

        # Then it waits, all are there, and it comes once there are fewer
        await until(waits, "it waits in the queue")
        alerts = (await scene.gateway.overview()).alerts
        assert ["5 dead letters, at most 2" in each.what for each in alerts if each.code == "letters_full"] == [True]
        assert await dead()
        assert await scene.gateway.purge(LetterFilter(function="queued"), 3) == {"queued": 3}
        await asyncio.sleep(2.5)  # two looks of its tailer: there is no room yet
        assert await scene.letters("queued") == 2
        await scene.gateway.purge(LetterFilter(function="queued"), 1)
        await until(lambda: has(scene, more.id), "its letter is kept")
    finally:
        await scene.stop()
