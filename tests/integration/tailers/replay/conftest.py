"""Processes that run the live tailer and its replays."""

from __future__ import annotations

import pytest
from scenes.replays import LIVE

from tailrace.model.lease import LeaseSizes
from tailrace.tailers.config import TailerConfig
from tailrace.tailers.replay import replaying
from tailrace.tailers.supervisor import Tailers


@pytest.fixture
def quick_looks(monkeypatch):
    """Has rows looked at often: nobody in these tests says that a row was written."""
    monkeypatch.setattr(replaying, "ROWS_EVERY", 0.05)
    monkeypatch.setattr(replaying, "LOOK_EVERY", 0.02)


@pytest.fixture
def make(quick_looks, environment, scheduler, parking, stores):
    def one(**keys):
        config = TailerConfig.model_validate(LIVE | keys)
        sizes = LeaseSizes.of_heartbeat(0.1)
        return Tailers([config], environment, scheduler.address, parking, sizes, due=False, replays=stores.replays)

    return one


@pytest.fixture
async def tailers(make):
    one = make()
    await one.start()
    yield one
    await one.stop()
