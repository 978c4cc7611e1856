"""The objects source when objects and stores misbehave: replaced, gone, damaged, refused, too long; and restarts at any
position in the middle of all that."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import aiohttp
import obstore
import pytest
from aiohttp import web
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from obstore.store import LocalStore, MemoryStore
from servers.moto_s3 import Moto

from tailrace.assembly.embedded import EmbeddedStores
from tailrace.sdk.model.errors import NotConnected
from tailrace.sdk.source import StreamBatch
from tailrace.tailers.sources.objects import ObjectsOptions, ObjectsSource

LINES = [b'{"n": %d, "pad": "%s"}' % (n, b"x" * (n % 60)) for n in range(400)]
CONTENT = b"".join(line + b"\n" for line in LINES)


class Place:
    """Objects in memory, and sources over them."""

    def __init__(self, stores: EmbeddedStores, client: Any = None, **keys: Any) -> None:
        self.stores = stores
        self.client = MemoryStore() if client is None else client
        self.keys = {"url": "memory:///", "poll": 0.02, "format": "jsonl", "block": 1024, **keys}

    def put(self, key: str, content: bytes) -> None:
        obstore.put(self.client, key, content)

    def source(self, **more: Any) -> ObjectsSource:
        options = ObjectsOptions.model_validate({**self.keys, **more})
        client = self.client if options.scheme == "memory" else None
        return ObjectsSource(options, self.stores.inventory, self.stores.segments, "o", client)


@pytest.fixture
def place(stores: EmbeddedStores) -> Place:
    return Place(stores)


class Read:
    """Everything that was read: by position what it is."""

    def __init__(self) -> None:
        self.items: dict[int, bytes] = {}
        self.refused: dict[int, str] = {}
        self.absent: list[int] = []

    def take(self, batches: list[StreamBatch]) -> None:
        for batch in batches:
            for index, position in enumerate(batch.positions):
                assert position not in self.items and position not in self.refused, "read twice"
                if index in batch.refused:
                    self.refused[position] = batch.refused[index]
                else:
                    self.items[position] = batch.payloads[index]
            self.absent.extend(batch.absent)

    @property
    def end(self) -> int:
        return len(self.items) + len(self.refused) + len(self.absent)

    @property
    def lines(self) -> list[bytes]:
        return [self.items[position] for position in sorted(self.items)]


async def everything(source: ObjectsSource, at: int = 0, limit: int = 100) -> Read:
    """All that is there, from a position on. The source is idle afterwards."""
    read = Read()
    await source.open({source.partition: at})
    async with asyncio.timeout(20):
        while True:
            batches = await source.read(limit, 1 << 20, 0.3)
            read.take(batches)
            if not batches and source.idle:
                break
    every = sorted([*read.items, *read.refused, *read.absent])
    assert every == list(range(at, at + len(every))), "every position once, without a gap"
    return read


async def test_lines_of_many_objects_come_in_order_and_a_restart_anywhere_goes_on_there(place: Place) -> None:
    # Given large and small objects, plain and packed, empty ones among them
    place.put("1-plain", CONTENT)
    place.put("2-packed.gz", gzip.compress(CONTENT[:5000]) + gzip.compress(CONTENT[5000:]))
    place.put("3-empty", b"")
    place.put("4-blank", b"\n\r\n\n")
    place.put("5-last", b"\n".join(LINES[:3]))
    source = place.source()
    whole = await everything(source)
    assert whole.lines == [*LINES, *LINES, *LINES[:3]] and len(whole.absent) == 2
    await source.close()

    # When another one opens at any position, then it reads exactly the rest, without listing anew
    for at in [0, 1, 57, 399, 400, 401, 733, 800, 801, 802, 804, 805]:
        again = place.source()
        rest = await everything(again, at, limit=37)
        assert rest.items == {position: item for position, item in whole.items.items() if position >= at}, at
        await again.close()


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_whoever_dies_anywhere_the_positions_mean_the_same(tmp_path_factory: Any, data: Any) -> None:
    """Any objects, any blocks, killed at any time: what was read once is the same item for ever, and nothing is left
    out."""
    lines = st.lists(st.sampled_from([b"", b"a", b"\xff", b"line %d" % 7, b"y" * 90, b"z" * 300]), max_size=12)
    objects = data.draw(st.lists(st.tuples(lines, st.booleans()), min_size=1, max_size=5))
    kills = data.draw(st.lists(st.integers(1, 9), max_size=4))

    async def story(folder: Path) -> None:
        async with EmbeddedStores(folder) as stores:
            place = Place(stores, max_line=200, block=1024)
            for number, (content, packed) in enumerate(objects):
                data_ = b"\n".join(content)
                place.put(f"k{number}" + ".gz" * packed, gzip.compress(data_) if packed else data_)
            seen = Read()
            for reads in kills:
                source = place.source()
                with contextlib.suppress(NotConnected):  # what the one before was writing came while it opened
                    await source.open({source.partition: seen.end})
                    for _ in range(reads):
                        seen.take(await source.read(2, 1 << 20, 0.02))
                await source.close()
            source = place.source()
            try:
                rest = await everything(source, seen.end)
            except NotConnected:
                await source.close()
                rest = await everything(source, seen.end)
            seen.items |= rest.items
            seen.refused |= rest.refused
            expected = [line for content, _ in objects for line in content if line and len(line) <= 200]
            assert seen.lines == expected
            assert len(seen.refused) == sum(len(line) > 200 for content, _ in objects for line in content)
            again = await source.reread(source.partition, sorted(seen.items))
            assert dict(zip(again.positions, again.payloads, strict=True)) == seen.items
            await source.close()

    asyncio.run(story(tmp_path_factory.mktemp("data")))


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
    assert "1-truncated.gz cannot be read" in truncated and "ends early" in truncated
    assert "max_ratio" in bomb and "not valid gzip" in none and "5000 bytes, more than the 2000" in long
    assert read.absent == []
    # And after a restart the refusals are the same
    await source.close()
    again = place.source(max_line=2000)
    repeated = await everything(again)
    assert (repeated.items, repeated.refused) == (read.items, read.refused)
    await again.close()


async def test_keys_with_odd_characters_are_keys_like_all_others(stores: EmbeddedStores, moto: Moto) -> None:
    place = Place(stores, moto.client(), **moto.keys, headers=True)
    odd = ["a b+c%2F?#&=", "ünï/é", "back\\slash", "~tilde'quote\"", "%20", "日本/語", "a.b..c", "{brace}|pipe^"]
    for key in odd:
        place.put(key, key.encode())
    source = place.source()
    await source.open({})
    found: dict[str, bytes] = {}
    async with asyncio.timeout(20):
        while len(found) < len(odd):
            for batch in await source.read(100, 1 << 20, 0.5):
                found |= dict(zip(batch.keys, batch.payloads, strict=True))
                assert [dict(each)["object-key"] for each in batch.headers] == batch.keys
    assert found == {key: key.encode() for key in odd}
    await source.close()


async def test_a_key_that_the_client_cannot_name_is_told(stores: EmbeddedStores, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in/new\nline").write_text("x")
    place = Place(stores, None, url=f"file://{tmp_path / 'in'}")
    source = place.source()
    with pytest.raises(NotConnected, match="cannot name stands in the way"):
        await everything(source)
    await source.close()


async def test_whole_objects_travel_by_value_up_to_a_limit_and_by_reference_beyond(
    stores: EmbeddedStores, tmp_path: Path
) -> None:
    (tmp_path / "in").mkdir()
    place = Place(stores, LocalStore(tmp_path / "in"), url=f"file://{tmp_path / 'in'}", format="whole", max_value=100)
    place.put("a-small", b"s" * 100)
    place.put("b-empty", b"")
    place.put("c-packed.gz", gzip.compress(b"c" * 100))
    place.put("d-large", b"l" * 101)
    place.put("e-packed.gz", gzip.compress(b"e" * 101))
    source = place.source()
    await source.open({})
    found: dict[str, bytes] = {}
    async with asyncio.timeout(10):
        while len(found) < 5:
            for batch in await source.read(100, 1 << 20, 0.5):
                found |= dict(zip(batch.keys, batch.payloads, strict=True))
                by_reference = [key for key, headers in zip(batch.keys, batch.headers, strict=True) if headers]
                assert all(key[0] in "de" for key in by_reference)
    assert found["a-small"] == b"s" * 100 and found["b-empty"] == b"" and found["c-packed.gz"] == b"c" * 100
    large, packed = json.loads(found["d-large"]), json.loads(found["e-packed.gz"])
    assert (large["key"], large["size"], large["gzip"]) == ("d-large", 101, False) and packed["gzip"]
    assert large["url"] == place.keys["url"]
    await source.close()


async def test_in_the_order_of_keys_late_ones_within_the_overlap_are_found_and_notes_stay_few(
    stores: EmbeddedStores,
) -> None:
    place = Place(stores, mode="lexicographic", overlap=5)
    for number in range(0, 100, 2):
        place.put(f"{number:03}", b"%d" % number)
    source = place.source()
    assert len((await everything(source)).items) == 50
    place.put("097", b"late")  # among the five greatest
    place.put("051", b"too late")
    place.put("100", b"next")
    found: list[bytes] = []
    async with asyncio.timeout(10):
        while len(found) < 2:
            found += [payload for batch in await source.read(10, 1 << 20, 0.2) for payload in batch.payloads]
    assert sorted(found) == [b"late", b"next"]
    # When all of it is settled, then only the overlap is kept
    await source.settled_below(source.partition, 52)
    place.put("101", b"newest")
    found = []
    while not found:
        found += [payload for batch in await source.read(10, 1 << 20, 0.2) for payload in batch.payloads]
    await source.settled_below(source.partition, 53)
    async with asyncio.timeout(10):
        while len((await stores.inventory.read(source._name, 0, 100)).names) > 8:
            await asyncio.sleep(0.02)
    assert len(await stores.segments.read(source._name, 0, 100)) <= 2
    # And a restart finds what comes next, and nothing again
    await source.close()
    place.put("102", b"after")
    again = place.source()
    assert (await everything(again, 53)).lines == [b"after"]
    await again.close()


class Faults:
    """An HTTP proxy before the store. `answer` says how the store answers a request instead; None: as it does."""

    def __init__(self, target: str) -> None:
        self.target = target
        self.endpoint = ""
        self.requests: list[str] = []
        self.answer: Callable[[web.Request], int | None] = lambda request: None

    async def __aenter__(self) -> Faults:
        self._session = aiohttp.ClientSession(auto_decompress=False)
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._pass)
        self._runner = web.AppRunner(app)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        host, port = self._runner.addresses[0][:2]
        self.endpoint = f"http://{host}:{port}"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()
        await self._session.close()

    async def _pass(self, request: web.Request) -> web.StreamResponse:
        self.requests.append(f"{request.method} {request.path_qs}")
        status = self.answer(request)
        if status is not None:
            return web.Response(status=status, text="<Error><Code>SlowDown</Code></Error>")
        async with self._session.request(
            request.method, self.target + request.raw_path, headers=request.headers, data=await request.read()
        ) as found:
            body = await found.read()
            headers = {name: value for name, value in found.headers.items() if name.lower() != "transfer-encoding"}
            return web.Response(status=found.status, headers=headers, body=None if request.method == "HEAD" else body)


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
