"""A file for each test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from scenes.sqlite_groups import opened

from tailrace.stores.sqlite.file import SqliteFile


@pytest.fixture
async def file(tmp_path: Path) -> AsyncIterator[SqliteFile]:
    async with opened(tmp_path / "t.db") as file:
        yield file
