"""The objects source obeys the laws of stream sources: on a local folder, in memory, and on S3 over real HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import obstore
import pytest
from obstore.store import LocalStore, MemoryStore
from servers.moto_s3 import Moto
from servers.object_emulators import AzurePlace, Azurite, FakeGcs, GcsPlace

from tailrace.assembly.embedded import EmbeddedStores
from tailrace.tailers.sources.objects import ObjectsOptions, ObjectsSource
from tailrace.testing.conformance.source import PAYLOADS, StreamBench, StreamSourceLaws, drained, payloads


class Bench:
    def __init__(self, stores: EmbeddedStores, client: Any, keys: dict[str, Any]) -> None:
        self.stores = stores
        self.client = client
        self.keys = keys
        self.count = 0

    def source(self) -> ObjectsSource:
        options = ObjectsOptions.model_validate({"poll": 0.02, **self.keys})
        client = self.client if options.scheme == "memory" else None
        return ObjectsSource(options, self.stores.inventory, self.stores.segments, "o", client)

    async def put(self, payloads: Sequence[bytes]) -> None:
        for payload in payloads:
            await obstore.put_async(self.client, f"key-{self.count:04}", payload)
            self.count += 1


@pytest.fixture
async def stores(tmp_path: Path) -> AsyncIterator[EmbeddedStores]:
    async with EmbeddedStores(tmp_path / "data") as stores:
        yield stores


class TestLocalFolder(StreamSourceLaws):
    @pytest.fixture
    def bench(self, stores: EmbeddedStores, tmp_path: Path) -> Bench:
        folder = tmp_path / "folder"
        folder.mkdir()
        return Bench(stores, LocalStore(folder), {"url": f"file://{folder}"})


class TestMemory(StreamSourceLaws):
    @pytest.fixture
    def bench(self, stores: EmbeddedStores) -> Bench:
        return Bench(stores, MemoryStore(), {"url": "memory:///"})


class TestMemoryInTheOrderOfKeys(StreamSourceLaws):
    @pytest.fixture
    def bench(self, stores: EmbeddedStores) -> Bench:
        return Bench(stores, MemoryStore(), {"url": "memory:///", "mode": "lexicographic", "overlap": 3})


class TestS3(StreamSourceLaws):
    @pytest.fixture
    def bench(self, stores: EmbeddedStores, moto: Moto) -> Bench:
        return Bench(stores, moto.client(), moto.keys)


class TestS3InTheOrderOfKeys(StreamSourceLaws):
    @pytest.fixture
    def bench(self, stores: EmbeddedStores, moto: Moto) -> Bench:
        return Bench(stores, moto.client(), {**moto.keys, "mode": "lexicographic"})


class EmulatedBench(Bench):
    """A bench over a container or a bucket of its own."""

    def __init__(self, stores: EmbeddedStores, place: AzurePlace | GcsPlace, **keys: Any) -> None:
        super().__init__(stores, None, {**place.keys, **keys})
        self._place = place

    async def put(self, payloads: Sequence[bytes]) -> None:
        for payload in payloads:
            await self._place.put(f"key-{self.count:04}", payload)
            self.count += 1


@pytest.mark.long(minutes=0.05)
class TestAzure(StreamSourceLaws):
    @pytest.fixture
    def bench(self, stores: EmbeddedStores, azurite: Azurite) -> Bench:
        return EmulatedBench(stores, azurite.place())


@pytest.mark.long(minutes=0.05)
class TestAzureInTheOrderOfKeys(StreamSourceLaws):
    @pytest.fixture
    def bench(self, stores: EmbeddedStores, azurite: Azurite) -> Bench:
        return EmulatedBench(stores, azurite.place(), mode="lexicographic", overlap=3)


@pytest.mark.long(minutes=0.05)
class TestGoogle(StreamSourceLaws):
    @pytest.fixture
    def bench(self, stores: EmbeddedStores, fake_gcs: FakeGcs) -> Bench:
        return EmulatedBench(stores, fake_gcs.place())


@pytest.mark.long(minutes=0.05)
class TestGoogleInTheOrderOfKeys(StreamSourceLaws):
    @pytest.fixture
    def bench(self, stores: EmbeddedStores, fake_gcs: FakeGcs) -> Bench:
        return EmulatedBench(stores, fake_gcs.place(), mode="lexicographic", overlap=3)


class LinesBench(Bench):
    """Each call puts one object; its lines are the payloads, of which an empty one is none."""

    async def put(self, payloads: Sequence[bytes]) -> None:
        await super().put([b"\n".join(payloads) + b"\n" * (self.count % 2)])


class TestLinesOfALocalFolder(StreamSourceLaws):
    @pytest.fixture
    def bench(self, stores: EmbeddedStores, tmp_path: Path) -> Bench:
        folder = tmp_path / "folder"
        folder.mkdir()
        return LinesBench(stores, LocalStore(folder), {"url": f"file://{folder}", "format": "jsonl", "block": 1024})

    async def test_payloads_come_through_untouched(self, bench: StreamBench) -> None:
        lines = [payload for payload in PAYLOADS if payload]
        await bench.put(lines)
        source = bench.source()
        await source.open({})
        assert sorted(payloads(await drained(source, len(lines)))) == sorted(lines)
        await source.close()
