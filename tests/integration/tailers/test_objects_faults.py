"""The objects source when objects and stores misbehave: replaced, gone, damaged, refused, too long."""

from __future__ import annotations

import asyncio
import gzip
import os
from collections.abc import AsyncIterator
from pathlib import Path

import obstore
import pytest
from aiohttp import web
from scenes.objects_faults import Faults
from scenes.objects_place import CONTENT, LINES, Place, Read, everything
from servers.moto_s3 import Moto

from tailrace.assembly.embedded import EmbeddedStores
from tailrace.model.errors import NotConnected


@pytest.fixture
def place(stores: EmbeddedStores) -> Place:
    return Place(stores)


async def test_an_object_replaced_while_it_is_read_is_never_mixed(place: Place) -> None:
    # Given an object of which a part was read
    lines = [b"line %d" % number for number in range(40_000)]
    place.put("a", b"\n".join(lines))
    place.put("b", b"after\n")
    source = place.source()
    await source.open({})
    read = Read()
    read.take(await source.read(10, 1 << 20, 5))
    # When it is replaced
    place.put("a", b"new\n" * 100_000)
    async with asyncio.timeout(20):
        while b"after" not in read.items.values():
            read.take(await source.read(100, 1 << 20, 0.2))
    # Then the lines are those of the old version, up to where it could be read, and one item stands for the rest
    old = [line for line in read.lines if line != b"after"]
    assert old == lines[: len(old)] and 10 <= len(old) < len(lines)
    [why] = read.refused.values()
    assert "cannot be read" in why and "a was replaced" in why
    await source.close()


async def test_with_versions_the_new_one_is_an_item_of_its_own(place: Place) -> None:
    place.put("a", b"one\n")
    source = place.source(versions=True)
    assert (await everything(source)).lines == [b"one"]
    place.put("a", b"two\n")
    [batch] = await source.read(10, 1 << 20, 5)
    assert batch.payloads == [b"two"]
    await source.close()


async def test_without_versions_an_object_comes_once(place: Place) -> None:
    place.put("a", b"one\n")
    source = place.source()
    assert (await everything(source)).lines == [b"one"]
    place.put("a", b"two\n")
    place.put("b", b"three\n")
    assert [batch.payloads for batch in await source.read(10, 1 << 20, 5)] == [[b"three"]]
    await source.close()


async def test_what_vanishes_before_it_is_read_is_absent_and_after_a_restart_too(place: Place) -> None:
    for key in "abc":
        place.put(key, key.encode() * 3)
    source = place.source()
    first = await everything(source)
    assert first.lines == [b"aaa", b"bbb", b"ccc"]
    await source.close()
    obstore.delete(place.client, "b")
    again = place.source()
    read = await everything(again)
    assert read.lines == [b"aaa", b"ccc"] and read.absent == [1]
    assert (await again.reread(again.partition, [0, 1, 2])).absent == [1]
    await again.close()


async def test_damaged_and_explosive_gzip_and_a_long_line_are_one_refusal_each_and_the_rest_goes_on(
    place: Place,
) -> None:
    place.put("1-truncated.gz", gzip.compress(CONTENT, 1)[:-600])
    place.put("2-bomb.gz", gzip.compress(b"first\n" + bytes(64 << 20)))
    place.put("3-none.gz", b"this is no gzip")
    place.put("4-long", b"before\n" + b"l" * 5000 + b"\nbehind\n")
    place.put("5-undecodable", b"\xff\xfe\x00\n\x80")
    source = place.source(max_line=2000)
    read = await everything(source)
    cut = len([line for line in read.lines if line in LINES])
    assert 100 < cut < 400 and read.lines == [*LINES[:cut], b"first", b"before", b"behind", b"\xff\xfe\x00", b"\x80"]
    truncated, bomb, none, long = [read.refused[position] for position in sorted(read.refused)]
    assert (
        truncated.startswith("1-truncated.gz, version ") and "cannot be read" in truncated and "ends early" in truncated
    )
    assert "max_ratio" in bomb and "not valid gzip" in none and "5000 bytes, more than the 2000" in long
    assert read.absent == []
    # And after a restart the refusals are the same
    await source.close()
    again = place.source(max_line=2000)
    repeated = await everything(again)
    assert (repeated.items, repeated.refused) == (read.items, read.refused)
    await again.close()


async def test_a_name_that_the_client_cannot_name_is_read_in_a_folder(stores: EmbeddedStores, tmp_path: Path) -> None:
    # Given a local folder with names that cannot be keys, among others
    (tmp_path / "in").mkdir()
    for name in (b"a", b"new\nline", b"no text \xff", b"y", b"z"):
        (tmp_path / "in" / os.fsdecode(name)).write_text(os.fsdecode(name)[0])
    place = Place(stores, None, url=f"file://{tmp_path / 'in'}")
    source = place.source()
    # When it is read
    read = await everything(source)
    # Then all are there
    assert sorted(read.lines) == [b"a", b"n", b"n", b"y", b"z"] and not read.refused
    await source.close()


@pytest.fixture
async def faults(moto: Moto) -> AsyncIterator[Faults]:
    async with Faults(moto.endpoint) as faults:
        yield faults


@pytest.mark.parametrize("status", [429, 503, 500])
async def test_a_store_that_refuses_for_now_is_not_connected_and_nothing_is_lost(
    status: int, stores: EmbeddedStores, moto: Moto, faults: Faults
) -> None:
    # Given a store that answers every third request badly, for reads and listings alike
    place = Place(stores, moto.client(), **{**moto.keys, "endpoint": faults.endpoint}, timeout=2.0)
    for number in range(3):
        place.put(f"k{number}", CONTENT)
    count = 0

    def badly(request: web.Request) -> int | None:
        nonlocal count
        count += 1
        return status if count % 3 == 0 else None

    faults.answer = badly
    # When it is read, and opened again whenever it says that it is not connected
    seen, source = Read(), place.source()
    async with asyncio.timeout(60):
        while len(seen.items) < 3 * len(LINES):
            try:
                await source.open({source.partition: seen.end})
                seen.take(await source.read(100, 1 << 20, 0.2))
            except NotConnected:
                await source.close()
    assert seen.lines == [*LINES, *LINES, *LINES] and seen.refused == {} and seen.absent == []
    await source.close()


async def test_a_store_that_ignores_conditions_mixes_nothing(
    stores: EmbeddedStores, moto: Moto, faults: Faults
) -> None:
    place = Place(stores, moto.client(), **{**moto.keys, "endpoint": faults.endpoint})
    big = CONTENT * 40
    place.put("a", big)
    source = place.source(block=4096)
    await source.open({})
    read = Read()
    read.take(await source.read(10, 1 << 20, 5))

    async def without_conditions(request: web.Request) -> web.StreamResponse:
        headers = {name: value for name, value in request.headers.items() if name.lower() != "if-match"}
        return await plain(request.clone(headers=headers))

    plain, faults._pass = faults._pass, without_conditions  # type: ignore[method-assign]
    place.put("a", big.replace(b"x", b"y"))
    async with asyncio.timeout(20):
        while not read.refused:
            read.take(await source.read(1000, 1 << 20, 0.2))
    assert not any(b"y" in line for line in read.lines)
    await source.close()
