"""A folder or a bucket that was deleted and made again under the same name is another source: nothing of it is passed
over without a word."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import obstore
import pytest
from servers.moto_s3 import BUCKET, Moto

from tailrace.assembly.embedded import EmbeddedStores
from tailrace.assembly.environments import tailers_environment
from tailrace.model.errors import NotConnected, PositionsGone
from tailrace.tailers.sources import directory, objects

NAMES = [f"file-{number:02}" for number in range(20)]
LONG_AGO = 1_700_000_000


@pytest.fixture
async def stores(tmp_path: Path) -> AsyncIterator[EmbeddedStores]:
    async with EmbeddedStores(tmp_path / "data") as stores:
        yield stores


def made(folder: Path, names: list[str] = NAMES) -> None:
    """Makes a folder with files, each as old as ever."""
    folder.mkdir()
    for name in names:
        (folder / name).write_text(name)
        os.utime(folder / name, (LONG_AGO, LONG_AGO))


def source_of(kind: Any, stores: EmbeddedStores, **keys: Any) -> Any:
    options = kind.KIND.options.model_validate({"poll": 0.05, **keys})
    return kind.KIND.build(options, replace(tailers_environment(stores), tailer="t"))


async def read(source: Any, count: int, position: int = 0, seconds: float = 10.0) -> list[bytes]:
    """Reads `count` items from a position on, as a tailer does: a source that is not connected is opened again. Fewer
    when no more come within the time."""
    found: list[bytes] = []
    absent = 0
    [partition] = await source.ends()
    try:
        async with asyncio.timeout(seconds):
            while len(found) + absent < count:
                try:
                    await source.open({partition: position + len(found) + absent})
                    for batch in await source.read(1000, 1 << 20, 0.2):
                        found += batch.payloads
                        absent += len(batch.absent)
                except NotConnected:
                    await source.close()
                    await asyncio.sleep(0.02)
    except TimeoutError:
        pass
    finally:
        await source.close()
    return found


def folder_source(kind: Any, stores: EmbeddedStores, folder: Path, **keys: Any) -> Any:
    where = {"path": str(folder), "payload": "content"} if kind is directory else {"url": f"file://{folder}"}
    return source_of(kind, stores, **where, **keys)


@pytest.mark.trust(point=2)
@pytest.mark.parametrize("kind", [directory, objects])
async def test_a_folder_that_was_made_again_stops_its_tailer_until_somebody_says_how_to_go_on(
    stores: EmbeddedStores, tmp_path: Path, kind: Any
) -> None:
    # Given a folder that was read, and another one of its name with files of the same names
    folder = tmp_path / "in"
    made(folder)
    assert len(await read(folder_source(kind, stores, folder), 20)) == 20
    shutil.rmtree(folder)
    made(folder)
    # When it is read on
    with pytest.raises(PositionsGone) as caught:
        await read(folder_source(kind, stores, folder), 1, position=20, seconds=3)
    # Then it stops, and says what to do
    assert str(folder) in str(caught.value) and "on_recreated: from_start" in str(caught.value)
    # And once that is said all of it is read, once, and what comes then
    again = folder_source(kind, stores, folder, on_recreated="from_start")
    assert sorted(await read(again, 20)) == sorted(name.encode() for name in NAMES)
    (folder / "new").write_text("new")
    last = folder_source(kind, stores, folder, on_recreated="from_start")
    assert await read(last, 1, position=20) == [b"new"]


@pytest.mark.trust(point=2)
@pytest.mark.parametrize("kind", [directory, objects])
async def test_files_of_a_folder_that_was_away_for_a_while_are_not_passed_over(
    stores: EmbeddedStores, tmp_path: Path, kind: Any
) -> None:
    # Given a folder of which some files were found and not read yet
    folder, away = tmp_path / "in", tmp_path / "away"
    made(folder)
    first = folder_source(kind, stores, folder, **({} if kind is directory else {"max_value": "1KiB"}))
    await first.open({})
    while not (batches := await first.read(1, 1 << 20, 0.2)):
        pass
    assert len(batches[0].payloads) == 1
    await first.close()
    # When an empty folder stands in its place for a while, as where a disk is not mounted
    folder.rename(away)
    folder.mkdir()
    with pytest.raises(PositionsGone):
        await read(folder_source(kind, stores, folder), 19, position=1, seconds=3)
    folder.rmdir()
    away.rename(folder)
    # Then all that was not read before is read after
    assert len(await read(folder_source(kind, stores, folder), 19, position=1, seconds=5)) == 19


@pytest.mark.trust(point=2)
async def test_a_folder_that_is_made_again_while_it_is_read_stops_its_tailer(
    stores: EmbeddedStores, tmp_path: Path
) -> None:
    # Given objects of a folder that were read, and a source that looks on
    folder = tmp_path / "in"
    made(folder)
    source = folder_source(objects, stores, folder)
    await source.open({})
    found = 0
    while found < 20:
        found += sum(len(batch.payloads) for batch in await source.read(1000, 1 << 20, 1))
    # When the folder is made again, with other content under the same names
    shutil.rmtree(folder)
    made(folder)
    # Then it stops
    with pytest.raises(PositionsGone, match="made again"):
        await read(source, 1, position=20, seconds=3)


@pytest.mark.trust(point=2)
async def test_a_bucket_that_was_made_again_stops_its_tailer_where_the_store_tells(
    stores: EmbeddedStores, moto: Moto
) -> None:
    # Given a bucket that was read, and another one of its name with keys of the same names
    keys = {**moto.keys, "url": f"s3://{BUCKET}"}
    client = moto.client("")

    def fill() -> None:
        for name in NAMES:
            obstore.put(client, name, name.encode())

    fill()
    assert len(await read(source_of(objects, stores, **keys), 20)) == 20
    obstore.delete(client, NAMES)
    assert moto.ask("DELETE", f"/{BUCKET}") == 204
    await asyncio.sleep(1.1)  # its dates are in seconds
    assert moto.ask("PUT", f"/{BUCKET}") == 200
    fill()
    # When it is read on
    with pytest.raises(PositionsGone, match="on_recreated: from_start"):
        await read(source_of(objects, stores, **keys), 1, position=20, seconds=3)
    # Then it stops, and reads all of it once somebody says so
    again = source_of(objects, stores, **keys, on_recreated="from_start")
    assert len(await read(again, 20)) == 20
