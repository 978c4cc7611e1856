"""A scheduler for each test."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from scenes.scheduler_place import Place


@pytest.fixture
async def place() -> AsyncIterator[Place]:
    made = Place()
    await made.start()
    yield made
    await made.close()
