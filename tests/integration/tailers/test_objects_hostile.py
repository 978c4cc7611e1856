"""Objects and keys that nobody can read or name: each is set aside with its reason, and the others go on."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import boto3
import pytest
from aiohttp import web
from scenes.objects_faults import Faults
from scenes.objects_place import CONTENT, LINES, Place, Read, everything
from servers.moto_s3 import BUCKET, Moto

from tailrace.assembly.embedded import EmbeddedStores
from tailrace.model.errors import NotConnected
from tailrace.tailers.rules import unreadable


@pytest.fixture
async def faults(moto: Moto) -> AsyncIterator[Faults]:
    async with Faults(moto.endpoint) as faults:
        yield faults


def any_keys(moto: Moto) -> Any:
    """A client that takes any text for a key."""
    return boto3.client(
        "s3",
        endpoint_url=moto.endpoint,
        region_name="us-east-1",
        aws_access_key_id="test",
        aws_secret_access_key="test-secret",
    )


async def all_of(source: Any, count: int, seen: Read | None = None) -> Read:
    """Reads `count` positions, and opens the source again whenever it says that it is not connected."""
    seen = seen or Read()
    async with asyncio.timeout(20):
        while seen.end < count:
            try:
                await source.open({source.partition: seen.end})
                seen.take(await source.read(1000, 1 << 20, 0.1))
            except NotConnected:
                await source.close()
    return seen


@pytest.mark.parametrize("form", ["whole", "jsonl"])
async def test_archived_objects_are_a_dead_letter_each_and_all_others_are_read(
    stores: EmbeddedStores, moto: Moto, form: str
) -> None:
    # Given more archived objects, one after the other, than are looked at side by side, and some that can be read
    place = Place(stores, moto.client(), **moto.keys, format=form)
    s3 = any_keys(moto)
    for number in range(24):
        storage = "GLACIER" if 1 <= number <= 20 else "STANDARD"
        s3.put_object(Bucket=BUCKET, Key=f"in/{number:03}", Body=b"%d" % number, StorageClass=storage)
    source = place.source()
    # When they are read
    read = await all_of(source, 24)
    # Then each archived one says why it is not, and the others are there
    assert read.lines == [b"0", b"21", b"22", b"23"] and read.absent == []
    assert len(read.refused) == 20
    assert all("InvalidObjectState" in why and "others can" in why for why in read.refused.values())
    await source.close()


async def test_where_no_object_can_be_read_the_store_is_what_refuses(stores: EmbeddedStores, moto: Moto) -> None:
    # Given a bucket of which no object can be read
    place = Place(stores, moto.client(), **moto.keys)
    s3 = any_keys(moto)
    for number in range(5):
        s3.put_object(Bucket=BUCKET, Key=f"in/{number}", Body=b"x\n", StorageClass="GLACIER")
    source = place.source()
    # Then nothing is given up, however often it is tried
    for _ in range(3):
        await source.open({})
        with pytest.raises(NotConnected, match="InvalidObjectState"):
            while True:
                assert await source.read(10, 1 << 20, 5) == []
        await source.close()
    # And when another one can be read, that one is
    s3.put_object(Bucket=BUCKET, Key="in/9", Body=b"y\n")
    read = await all_of(source, 6)
    assert read.lines == [b"y"] and len(read.refused) == 5
    await source.close()


async def test_an_object_that_goes_out_of_reach_after_it_was_cut_is_a_dead_letter_for_each_of_its_items(
    stores: EmbeddedStores, moto: Moto
) -> None:
    # Given objects that were read, and a restart from the beginning after one was archived
    async with Faults(moto.endpoint) as store:
        place = Place(stores, moto.client(), **{**moto.keys, "endpoint": store.endpoint})
        place.put("a", b"1\n2\n3\n")
        place.put("b", b"4\n")
        first = place.source()
        await all_of(first, 4)
        await first.close()
        store.answer = lambda request: 403 if request.path.endswith("/in/a") else None
        again = place.source()
        # When it is read again
        read = await all_of(again, 4)
        # Then each of its items says why it is not there, at its own position
        assert sorted(read.refused) == [0, 1, 2] and read.lines == [b"4"]
        batch = await again.reread(again.partition, [1, 3])
        assert batch.positions == [1, 3] and sorted(batch.refused) == [0]
        await again.close()


async def test_an_object_that_is_refused_in_its_middle_is_one_dead_letter_for_the_rest(
    stores: EmbeddedStores, moto: Moto, faults: Faults
) -> None:
    # Given an object of which the store refuses all but the first part
    place = Place(stores, moto.client(), **{**moto.keys, "endpoint": faults.endpoint})
    place.put("a", CONTENT * 30)
    place.put("b", b"after\n")

    def refused(request: web.Request) -> int | None:
        ranged = request.headers.get("Range", "bytes=0-")
        return 403 if request.path.endswith("/in/a") and not ranged.startswith("bytes=0-") else None

    faults.answer = refused
    source = place.source(block=64 << 10)
    # When all is read
    read = await everything(source, limit=10_000)
    # Then its first lines are there, one dead letter stands for the rest, and the other goes on
    assert read.lines == [*(LINES * 30)[: read.end - 2], b"after"] and read.end > 100
    assert list(read.refused) == [read.end - 2]
    await source.close()


KEYS = ["a", "a/!", "a/-", "a/0", "a/00", "a/b", "b/c/.0", "b/d", "c", "m ", "m!", "zz"]
UNNAMEABLE = ["a//b", "a//c", "b/c/./d", "m\t", "m\x1f/y", "n/../x", "z/\x7f"]


@pytest.mark.parametrize("mode", ["inventory", "lexicographic"])
async def test_keys_that_the_client_cannot_name_stop_no_listing(stores: EmbeddedStores, moto: Moto, mode: str) -> None:
    # Given keys that the client cannot name, of which some begin as another one does, among others
    place = Place(stores, moto.client(), **moto.keys, mode=mode, format="whole")
    s3 = any_keys(moto)
    for key in [*KEYS, *UNNAMEABLE]:
        s3.put_object(Bucket=BUCKET, Key=f"in/{key}", Body=key.encode())
    source = place.source()
    # When all is read
    read = await everything(source)
    # Then all others are there once
    assert sorted(read.lines) == sorted(key.encode() for key in KEYS)
    # And each of the others says why it is not
    said = sorted(why.partition("key ")[2].partition(",")[0] for why in read.refused.values())
    assert said == sorted(map(repr, UNNAMEABLE))
    # And the next listing finds what is new
    s3.put_object(Bucket=BUCKET, Key="in/zzz", Body=b"new")
    [batch] = await source.read(10, 1 << 20, 10)
    assert batch.payloads == [b"new"]
    await source.close()


@pytest.mark.parametrize("odd", ["", "b//c"])
async def test_folders_are_no_objects_also_beside_keys_that_the_client_cannot_name(
    stores: EmbeddedStores, moto: Moto, odd: str
) -> None:
    # Given the empty objects that a console makes for folders, the place's own among them
    place = Place(stores, moto.client(), **moto.keys, format="whole")
    s3 = any_keys(moto)
    for key in ["", "a", "b/", "b/x", "z/", *filter(None, [odd])]:
        s3.put_object(Bucket=BUCKET, Key=f"in/{key}", Body=key.encode() if key.strip("/") == key else b"")
    source = place.source()
    # When all is read
    read = await everything(source)
    # Then the objects are there, and a folder is nothing that cannot be read
    assert read.lines == [b"a", b"b/x"]
    assert [why.partition("key ")[2].partition(",")[0] for why in read.refused.values()] == [repr(odd)] * bool(odd)
    await source.close()


@pytest.mark.long(minutes=0.5)
async def test_whole_pages_before_and_behind_such_a_key_are_listed(stores: EmbeddedStores, moto: Moto) -> None:
    # Given such keys in the second page and in the third
    place = Place(stores, moto.client(), **moto.keys, format="whole")
    s3 = any_keys(moto)
    keys = [
        f"{folder}/{number:04}" for folder, count in (("a", 1010), ("c", 1010), ("e", 5)) for number in range(count)
    ]
    with ThreadPoolExecutor(4) as pool:
        for key in [*keys, "b//x", "c/d//y"]:
            pool.submit(s3.put_object, Bucket=BUCKET, Key=f"in/{key}", Body=key.encode())
    source = place.source()
    # Then every other key is found
    read = await everything(source, limit=5000)
    assert sorted(read.lines) == [key.encode() for key in keys]
    assert len(read.refused) == 2
    await source.close()


async def test_a_pipe_in_a_local_folder_is_given_up_and_not_waited_for(
    stores: EmbeddedStores, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a file that became a pipe after it was listed
    monkeypatch.setattr(unreadable, "LASTS", 0.0)
    (tmp_path / "in").mkdir()
    for name in "abc":
        (tmp_path / "in" / name).write_text(name)
    place = Place(stores, None, url=f"file://{tmp_path / 'in'}", timeout=0.3, once=True)
    first = place.source()
    await everything(first)
    (tmp_path / "in/b").unlink()
    os.mkfifo(tmp_path / "in/b")
    await first.close()
    # When it is read again
    again = place.source()
    read = await all_of(again, 3)
    # Then it is set aside, and the others are there
    assert sorted(read.lines) == [b"a", b"c"] and len(read.refused) + len(read.absent) == 1
    await again.close()
