"""Limits while scheduler, workers and the node are killed, frozen and told to end: the functions' journal shows how
many ran at once, and how fast."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tailrace.bench.faults.limits_world import QUOTAS, LimitsWorld, limited_faults, limited_items
from tailrace.bench.faults.run import run


@pytest.mark.long(minutes=1.2)
@pytest.mark.timeout(280)
def test_no_limit_is_passed_whatever_dies(tmp_path: Path) -> None:
    # Given limits of a function, a tenant and a downstream, each of which there is more work for than it lets run
    world = LimitsWorld(tmp_path / "run", 0.5)
    # When those die that count
    result = asyncio.run(run(world, limited_items(900, 1), limited_faults(), 1, lambda what, share: None))
    # Then nobody saw more at once, or more starts of any time, than each lets
    assert [each for each in result.verdict.findings if each.law != "unexplained"] == []
    assert result.verdict.completed == result.verdict.items == 900
    # And each was reached
    for quota in QUOTAS:
        if quota.concurrency:
            name = quota.function or quota.tenant or quota.downstream
            assert result.more[f"most_at_once_{name}"] == quota.concurrency
    assert result.more["most_of_burst_work"] > 3
