"""One law for all object stores: listing, reads at an offset, pinned versions, missing objects and refusals are alike
on S3, Azure, Google and in a local folder."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any, Protocol

import obstore
import pytest
from obstore.store import LocalStore
from servers.moto_s3 import Moto
from servers.object_emulators import Azurite, FakeGcs

from tailrace.foundation.object_places import Place
from tailrace.foundation.objects import SORTED, Gone, ObjectStore, Replaced
from tailrace.model.errors import NotConnected

#: More keys than a page of any store's listing, but for Azure's of 5,000.
MANY = 1100


class Filled(Protocol):
    """A place that can be filled; `keys` as a tailer's file has them."""

    keys: dict[str, Any]

    async def put(self, key: str, content: bytes) -> None: ...

    async def remove(self, key: str) -> None: ...


class OfClient:
    """A place that obstore's own client fills."""

    def __init__(self, keys: dict[str, Any], client: Any) -> None:
        self.keys = keys
        self._client = client

    async def put(self, key: str, content: bytes) -> None:
        await obstore.put_async(self._client, key, content)

    async def remove(self, key: str) -> None:
        await obstore.delete_async(self._client, key)


def opened(place: Filled, **other: Any) -> ObjectStore:
    return ObjectStore(Place.model_validate({**place.keys, **other}))


async def listed(store: ObjectStore, after: str = "") -> list[str]:
    return [each.key async for page in store.pages(after, 100) for each in page]


class ObjectStoreLaws:
    """The laws of object stores. `place` is empty and nobody else's."""

    async def test_a_listing_resumes_after_any_key_and_comes_in_the_order_of_keys(self, place: Filled) -> None:
        keys = [f"{number:05}" for number in range(MANY)]
        for key in random.sample(keys, len(keys)):
            await place.put(key, b"x")
        store = opened(place)
        found = await listed(store)
        assert sorted(found) == keys and len(found) == MANY
        if store.place.scheme in SORTED:
            assert found == keys
        for after in ("00499", "004990", "01098", "01099", "zzz"):
            assert sorted(await listed(store, after)) == [key for key in keys if key > after]

    async def test_every_key_comes_also_where_the_store_has_another_order(self, place: Filled) -> None:
        keys = [f"{letter}{number:02}" for letter in ("a", "\uffe0", "\U0001f600") for number in range(60)]
        for key in keys:
            await place.put(key, b"x")
        assert sorted(await listed(opened(place))) == keys

    async def test_keys_of_every_kind_come_as_they_are(self, place: Filled) -> None:
        keys = sorted(["a b+c", "folder/deep/x", "folder/y", "pro%cent", "q=1&r=2", "ümläut", "日本"])
        for key in keys:
            await place.put(key, key.encode())
        store = opened(place)
        assert sorted(await listed(store)) == keys
        for key in keys:
            facts, content = await store.whole(key, 1000)
            assert (facts.key, content) == (key, key.encode())

    async def test_a_large_object_is_read_in_parts_of_one_version(self, place: Filled) -> None:
        content = random.Random(1).randbytes(9 << 20)
        await place.put("large", content)
        store = opened(place)
        facts = await store.facts("large")
        [row] = [each async for page in store.pages("", 10) for each in page]
        assert facts.size == len(content) and not facts.gzip and facts.version
        assert row.key == facts.key == "large" and row.etag == facts.etag
        block = 2 << 20
        parts = [await store.part("large", facts.version, start, block) for start in range(0, len(content), block)]
        assert b"".join(parts) == content
        for start, length in ((0, 1), (12_345, 678), (len(content) - 3, 3), (len(content) - 3, 99)):
            assert await store.part("large", facts.version, start, length) == content[start : start + length]
        assert await store.whole("large", 1000) == (facts, None)

    async def test_what_was_replaced_is_never_read_as_what_it_was(self, place: Filled) -> None:
        await place.put("a", b"first")
        store = opened(place)
        first = await store.facts("a")
        await place.put("a", b"other")
        second = await store.facts("a")
        assert second.version != first.version and second.etag != first.etag
        for read in (lambda: store.part("a", first.version, 0, 5), lambda: store.facts("a", first.version)):
            with pytest.raises((Replaced, Gone)):
                await read()
        assert await store.part("a", second.version, 0, 5) == b"other"

    async def test_what_is_gone_is_told_apart_from_a_place_that_is_not_there(self, place: Filled) -> None:
        await place.put("a", b"x")
        store = opened(place)
        version = (await store.facts("a")).version
        await place.remove("a")
        for read in (store.facts("a"), store.whole("a", 10)):
            with pytest.raises(Gone, match="a is gone"):
                await read
        with pytest.raises((Gone, Replaced)):  # Azure answers that its condition does not hold
            await store.part("a", version, 0, 1)
        assert await listed(store) == []
        url = place.keys["url"].removesuffix("/in") + "-nowhere"
        with pytest.raises(NotConnected) as caught:
            await listed(opened(place, url=url))
        assert url in str(caught.value) and "\n" not in str(caught.value)

    async def test_a_server_that_is_away_is_not_connected(self, place: Filled) -> None:
        if "endpoint" not in place.keys:
            pytest.skip("a folder is not reached over a wire")
        with pytest.raises(NotConnected) as caught:
            await listed(opened(place, endpoint="http://127.0.0.1:9/x"))
        assert place.keys["url"] in str(caught.value) and "\n" not in str(caught.value)


class TestLocalFolder(ObjectStoreLaws):
    @pytest.fixture
    def place(self, tmp_path: Path) -> Filled:
        folder = tmp_path / "in"
        folder.mkdir()
        return OfClient({"url": f"file://{folder}"}, LocalStore(folder))


@pytest.mark.long(minutes=0.05)
class TestS3(ObjectStoreLaws):
    @pytest.fixture
    def place(self, moto: Moto) -> Filled:
        return OfClient(moto.keys, moto.client())


@pytest.mark.long(minutes=0.05)
class TestAzure(ObjectStoreLaws):
    @pytest.fixture
    def place(self, azurite: Azurite) -> Filled:
        return azurite.place()

    async def test_a_wrong_key_is_told_as_such(self, place: Filled) -> None:
        wrong = {**place.keys["credentials"], "account_key": "bm90IHRoZSBrZXk="}
        with pytest.raises(NotConnected, match="check credentials") as caught:
            await listed(opened(place, credentials=wrong))
        assert "AuthorizationFailure" in str(caught.value) and "bm90IHRoZSBrZXk=" not in str(caught.value)

    async def test_a_place_that_is_open_to_nobody_is_told_as_such(self, place: Filled) -> None:
        with pytest.raises(NotConnected, match="write its account_name under credentials"):
            await listed(opened(place, credentials={}, anonymous=True))
        name = {"account_name": place.keys["credentials"]["account_name"]}
        with pytest.raises(NotConnected):
            await listed(opened(place, credentials=name, anonymous=True))


@pytest.mark.long(minutes=0.05)
class TestGoogle(ObjectStoreLaws):
    @pytest.fixture
    def place(self, fake_gcs: FakeGcs) -> Filled:
        return fake_gcs.place()
