"""The directory source obeys the laws of stream sources."""

import pytest

from tailrace.assembly.embedded import EmbeddedStores
from tailrace.tailers.sources.directory import DirectoryOptions, DirectorySource
from tailrace.testing.conformance.source import StreamSourceLaws


class Bench:
    def __init__(self, inventory, folder):
        self.inventory = inventory
        self.folder = folder
        self.count = 0
        folder.mkdir()

    def source(self):
        options = DirectoryOptions(path=str(self.folder), exclude=(".*",), payload="content", poll=0.02)
        return DirectorySource(options, self.inventory, "d")

    async def put(self, payloads):
        for payload in payloads:
            fresh = self.folder / f".{self.count}"
            fresh.write_bytes(payload)
            fresh.rename(self.folder / f"file-{self.count:04}")
            self.count += 1


class TestDirectorySource(StreamSourceLaws):
    @pytest.fixture
    async def bench(self, tmp_path):
        async with EmbeddedStores(tmp_path / "data") as stores:
            yield Bench(stores.inventory, tmp_path / "folder")
