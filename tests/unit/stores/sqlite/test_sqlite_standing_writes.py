"""Standing writes wait until there is something for them: each is served in its turn, once."""

from __future__ import annotations

import asyncio
import math
import sqlite3

import pytest
from scenes.sqlite_groups import SOON, Held, add, commits, standing, take, texts

from tailrace.model.errors import InvalidRequest
from tailrace.stores.sqlite.file import AskAgain, SqliteFile


async def test_a_heavy_write_leaves_what_stands_to_the_light_ones_that_wait(file: SqliteFile) -> None:
    # Given a claim that stands, and a heavy write during which something light comes
    waiting = await standing(file, take)
    held = Held(file, heavy=True)
    await held.began()
    light = asyncio.create_task(file.write(add("a")))
    await asyncio.sleep(0)

    # When the heavy one is done, then the claim is asked with the light one, in one commit
    said: list[str] = []
    await held.release(lambda connection: connection.set_trace_callback(said.append))
    assert await asyncio.wait_for(waiting, SOON) == ["a"]
    await light
    assert said.count("COMMIT") == 2


async def test_a_standing_write_sees_a_later_write_in_the_same_commit(file: SqliteFile) -> None:
    said = await commits(file)
    waiting = await standing(file, take)
    said.clear()
    await file.write(add("a"))
    assert await asyncio.wait_for(waiting, SOON) == ["a"]
    assert said.count("COMMIT") == 1
    assert await file.read(texts) == []


async def test_a_standing_write_that_finds_something_at_once_does_not_wait(file: SqliteFile) -> None:
    await file.write(add("a"))
    assert await asyncio.wait_for(file.write_when(take, 60.0), SOON) == ["a"]


async def test_standing_writes_are_served_in_turn_and_none_gets_anothers(file: SqliteFile) -> None:
    waiting = [await standing(file, take) for _ in range(2)]
    await file.write(add("a"))
    await file.write(add("b"))
    assert await asyncio.wait_for(asyncio.gather(*waiting), SOON) == [["a"], ["b"]]


async def test_a_standing_write_ends_empty_handed_when_its_time_is_over(file: SqliteFile) -> None:
    assert await asyncio.wait_for(file.write_when(take, 0.02), SOON) is None
    assert await asyncio.wait_for(file.write_when(take, 0.0), SOON) is None


async def test_a_standing_write_is_asked_again_when_it_said_so(file: SqliteFile) -> None:
    asked = 0

    def third_time(_: sqlite3.Connection) -> str | AskAgain:
        nonlocal asked
        asked += 1
        return "found" if asked == 3 else AskAgain(0.001)

    assert await asyncio.wait_for(file.write_when(third_time, 60.0), SOON) == "found"


async def test_a_standing_write_that_fails_is_answered_with_its_error(file: SqliteFile) -> None:
    def fail(_: sqlite3.Connection) -> AskAgain:
        raise InvalidRequest("no")

    with pytest.raises(InvalidRequest):
        await asyncio.wait_for(file.write_when(fail, 60.0), SOON)


async def test_a_standing_write_that_was_given_up_takes_nothing(file: SqliteFile) -> None:
    waiting = await standing(file, take)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await file.write(add("a"))
    assert await file.read(texts) == ["a"]


async def test_a_standing_write_whose_time_was_over_in_a_stall_is_not_asked_again(file: SqliteFile) -> None:
    # Given a claim that was asked, and a write that holds up the writer until its time is over
    asked = 0

    def look(_: sqlite3.Connection) -> AskAgain:
        nonlocal asked
        asked += 1
        return AskAgain(60.0)

    waiting = asyncio.create_task(file.write_when(look, 0.05))
    while not asked:
        await file.write(lambda connection: None)
    held, before = Held(file), asked
    await held.began()
    await asyncio.sleep(0.1)
    # When that one is done, then the claim finds nothing, whatever there is by now
    await held.release()
    assert await asyncio.wait_for(waiting, SOON) is None
    assert asked == before


async def test_a_standing_write_knows_how_long_others_have_waited_to_be_heard(file: SqliteFile) -> None:
    # Given a claim that stands, a writer that is held up, and writes that wait behind that
    behind: list[float] = []
    enough = math.inf

    def look(_: sqlite3.Connection) -> str | AskAgain:
        behind.append(file.behind)
        return "found" if len(behind) == enough else AskAgain(60.0)

    waiting = asyncio.create_task(file.write_when(look, 60.0))
    await file.write(lambda connection: None)
    held = Held(file)
    await held.began()
    enough = len(behind) + 2  # asked once or twice until now
    told = asyncio.create_task(file.write(add("a")))
    await asyncio.sleep(0.1)
    # When they go on: it is asked beside the first, which is behind, and beside the others, which is not
    await held.release()
    await told
    assert await asyncio.wait_for(waiting, SOON) == "found"
    assert behind[-2] >= 0.1
    assert behind[-1] == 0
