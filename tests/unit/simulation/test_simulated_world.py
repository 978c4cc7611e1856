"""The world that the simulation runs in: time, hosts that die and freeze, disks that survive them."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest

from tailrace.model.errors import InvalidRequest
from tailrace.stores.sqlite.file import AskAgain
from tailrace.testing.simulation.clock import MachineClock
from tailrace.testing.simulation.host import Host
from tailrace.testing.simulation.sqlite_disk import Disk, InlineFile
from tailrace.testing.simulation.world import Spinning, World

SCHEMA = "CREATE TABLE IF NOT EXISTS rows (n INTEGER PRIMARY KEY)"


@pytest.fixture
def world() -> Iterator[World]:
    world = World(1)
    yield world
    world.dispose()


@pytest.fixture
def disk() -> Iterator[Disk]:
    disk = Disk()
    yield disk
    disk.close()


def host(
    world: World, main: Callable[[], Coroutine[Any, Any, None]], name: str = "one", rate: float = 1.0, disk: Any = None
) -> Host:
    return Host(world, name, MachineClock(world, rate), main, disk)


def test_time_passes_without_waiting_and_each_host_counts_it_by_its_own_clock(world: World) -> None:
    # Given two hosts whose clocks run apart
    seen: dict[str, float] = {}

    def main(name: str) -> Callable[[], Coroutine[Any, Any, None]]:
        async def run() -> None:
            await asyncio.sleep(1000.0)
            seen[name] = world.now

        return run

    host(world, main("fast"), "fast", 1.01).start()
    host(world, main("slow"), "slow", 0.99).start()
    # When two thousand seconds pass
    world.run(2000.0)
    # Then each has slept by its own clock, and never less than it asked for
    assert seen["fast"] == pytest.approx(1000 / 1.01)
    assert seen["slow"] == pytest.approx(1000 / 0.99)
    assert seen["fast"] * 1.01 >= 1000.0


def test_a_killed_host_runs_nothing_more_not_even_its_finally_blocks(world: World) -> None:
    # Given a host in the middle of something
    said: list[str] = []

    async def main() -> None:
        try:
            await asyncio.sleep(10.0)
            said.append("done")
        finally:
            said.append("cleaned up")

    victim = host(world, main)
    victim.start()
    world.run(1.0)
    # When it is killed
    victim.kill()
    world.run(20.0)
    # Then nothing of it is heard again, and a new process begins anew
    assert said == []
    victim.start()
    world.run(40.0)
    assert said == ["done", "cleaned up"]


def test_a_frozen_host_stands_still_while_its_clock_goes_on(world: World) -> None:
    # Given a host that looks at its clock every second
    seen: list[float] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(1.0)
            seen.append(loop.time() - 1000.0)

    frozen = host(world, main)
    frozen.start()
    world.at(2.5, frozen.freeze)
    world.at(30.0, frozen.thaw)
    # When it is frozen between 2.5 and 30
    world.run(31.5)
    # Then it sees the gap
    assert [round(each, 3) for each in seen] == [1.0, 2.0, 30.0, 31.0]


def test_what_spins_without_time_passing_is_found(world: World) -> None:
    async def main() -> None:
        while True:
            await asyncio.sleep(0)

    spinning = host(world, main)
    spinning.start()
    with pytest.raises(Spinning):
        world.run(1.0)


@pytest.mark.parametrize("way", ["a call", "an event", "a process"])
def test_who_turns_alone_does_so_no_longer_than_nobody_else_has_anything_to_do(world: World, way: str) -> None:
    # Given a host that turns two hundred times at one moment, and alone until it gives another something to do
    said: list[object] = []

    async def idle() -> None:
        said.append("a process")
        await asyncio.sleep(100.0)

    other = host(world, idle, "other")

    async def busy() -> None:
        await asyncio.sleep(1.0)
        for number in range(200):
            said.append(number)
            if number == 50:
                match way:
                    case "a call":
                        other.call(said.append, "a call")
                    case "an event":
                        world.at(world.now, said.append, "an event")
                    case "a process":
                        other.kill()
                        other.start()
            await asyncio.sleep(0)

    other.start()
    host(world, busy, "busy").start()
    # When they run
    world.run(50.0)
    # Then the other had its turn while the first still had many
    heard = len(said) - 1 - said[::-1].index(way)
    assert 50 in said[:heard]
    assert 199 in said[heard:]


def test_who_freezes_in_the_middle_of_its_turns_has_no_more_of_them(world: World) -> None:
    # Given a host that turns again and again at one moment, and is stopped in one of its turns
    said: list[tuple[int, float]] = []

    async def main() -> None:
        for number in range(10):
            said.append((number, world.now))
            if number == 5:
                one.freeze()
            await asyncio.sleep(0)

    one = host(world, main)
    one.start()
    world.at(30.0, one.thaw)
    # When time passes
    world.run(50.0)
    # Then it goes on when it thaws
    assert [at for _, at in said] == [0.0] * 6 + [30.0] * 4


def test_the_same_seed_tells_the_same_story_and_another_one_does_not() -> None:
    def story(seed: int) -> str:
        world = World(seed)

        async def main() -> None:
            for _ in range(20):
                await asyncio.sleep(world.random.random())
                world.say("?", "turned")

        for name in "abc":
            host(world, main, name).start()
        world.run(100.0)
        world.dispose()
        return world.hash

    assert story(1) == story(1)
    assert story(1) != story(2)


class Rows:
    """A host that writes 1, 2, 3, … one after the other, and notes the answers."""

    def __init__(self, world: World, disk: Disk) -> None:
        self.disk = disk
        self.told: list[int] = []
        self.host = host(world, self.main, disk=self.disk)

    async def main(self) -> None:
        file = InlineFile(Path("rows.db"), SCHEMA, name="rows")
        await file.open()
        for n in range(1, 6):
            await file.write(lambda connection, n=n: connection.execute("INSERT INTO rows VALUES (?)", (n,)))
            self.told.append(n)

    def rows(self) -> list[int]:
        return [n for (n,) in self.disk.connect("rows").execute("SELECT n FROM rows ORDER BY n")]


@pytest.mark.parametrize(("point", "kept"), [("rows: before commit", [1, 2]), ("rows: after commit", [1, 2, 3])])
def test_a_host_may_die_before_a_commit_or_after_it_and_what_was_answered_is_kept(
    world: World, disk: Disk, point: str, kept: list[int]
) -> None:
    # Given a host that will die around its third commit
    rows = Rows(world, disk)
    rows.host.kill_at = (point, 3)
    # When it runs
    rows.host.start()
    world.run(10.0)
    # Then it heard of two rows, and the third is there if the commit was
    assert not rows.host.up
    assert rows.told == [1, 2]
    assert rows.rows() == kept


def test_an_inline_file_undoes_one_write_alone_and_wakes_standing_ones(world: World, disk: Disk) -> None:
    # Given a file with a standing write that waits for a row
    seen: list[Any] = []

    async def main() -> None:
        file = InlineFile(Path("rows.db"), SCHEMA, name="rows")
        await file.open()

        def count(connection: Any) -> Any:
            return connection.execute("SELECT count(*) FROM rows").fetchone()[0] or AskAgain(5.0)

        def refuse(connection: Any) -> None:
            connection.execute("INSERT INTO rows VALUES (7)")
            raise InvalidRequest("no")

        waiting = asyncio.create_task(file.write_when(count, 60.0))
        late = asyncio.create_task(file.write_when(lambda connection: AskAgain(5.0), 2.0))
        await asyncio.sleep(1.0)
        # When one write is refused and another one is not
        refused, kept = await asyncio.gather(
            file.write(refuse), file.write(lambda connection: connection.execute("INSERT INTO rows VALUES (1)")),
            return_exceptions=True,
        )  # fmt: skip
        seen.extend([type(refused), isinstance(kept, Exception), await waiting, await late])
        seen.append(await file.read(lambda connection: connection.execute("SELECT n FROM rows").fetchall()))
        await file.close()

    writer = host(world, main, disk=disk)
    writer.start()
    world.run(10.0)
    # Then the one row is there, the standing write saw it, and the one whose time was over got nothing
    assert seen == [InvalidRequest, False, 1, None, [(1,)]]
    assert writer.failure is None


def test_a_store_can_be_put_back_to_an_older_copy(world: World, disk: Disk) -> None:
    rows = Rows(world, disk)
    rows.host.start()
    world.run(10.0)
    copy = rows.disk.copy("rows")
    rows.disk.connect("rows").execute("DELETE FROM rows")
    rows.disk.restore("rows", copy)
    assert rows.rows() == [1, 2, 3, 4, 5]
