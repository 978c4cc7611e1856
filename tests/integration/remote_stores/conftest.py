"""A server in front of the embedded engines."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from scenes.served_stores import serving

from tailrace.assembly.embedded import EmbeddedStores
from tailrace.stores.config import StoresConfig


@pytest.fixture
async def address(tmp_path: Path) -> AsyncIterator[str]:
    config = StoresConfig(durability="relaxed", max_payload=1000, max_waiting=100)
    async with EmbeddedStores(tmp_path / "data", config) as stores, serving(stores.engines()) as address:
        yield address
