"""Reading by the objects source: it makes items whose positions stay, however it dies and whatever the keys are."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from obstore.store import LocalStore
from scenes.objects_place import CONTENT, LINES, Place, Read, everything
from servers.moto_s3 import Moto

from tailrace.assembly.embedded import EmbeddedStores
from tailrace.model.errors import NotConnected


async def test_lines_of_many_objects_come_in_order_and_a_restart_anywhere_goes_on_there(
    stores: EmbeddedStores,
) -> None:
    place = Place(stores)
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
