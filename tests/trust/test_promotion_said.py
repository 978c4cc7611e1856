"""A start on a PostgreSQL with standbys says once what a promotion may lose."""

from __future__ import annotations

import asyncio
import json
import logging
from pathlib import Path

import pytest
from scenes.lone_node import node
from servers.standby import WithStandby


@pytest.mark.trust(point=22)
async def test_a_start_says_once_what_a_promotion_may_lose(
    with_standby: WithStandby, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    config = tmp_path / "config"
    config.mkdir()
    there = {"engine": "postgres", "url": with_standby.primary.address}
    (config / "stores.yaml").write_text(json.dumps({"queue": there}))
    # Given a server whose standby nobody waits for, When a node starts, Then it says so, once
    async with node(tmp_path, config):
        pass
    [said] = [each for each in caplog.messages if "promotion" in each]
    assert "does not wait for its standbys (1 now" in said and "loses accepted workloads" in said
    assert "not a secret" not in said
    # And of one whose standby is waited for it says what that means
    await asyncio.to_thread(with_standby.wait_for_it)
    caplog.clear()
    async with node(tmp_path, config):
        pass
    [said] = [each for each in caplog.messages if "promotion" in each]
    assert "waits for second" in said and "loses nothing that was confirmed" in said
