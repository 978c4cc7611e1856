"""The scenario `backlog`: its report on claims, and twins that are copies of submitted items."""

from pathlib import Path

import pytest

from tailrace.bench import backlog
from tailrace.bench.backlog import Costs, compared
from tailrace.model.errors import InvalidRequest


def test_waits_are_compared_by_their_medians_and_cpu_by_its_means():
    few, many = Costs([0.010, 0.010, 0.5], [0.004, 0.006]), Costs([0.012, 0.012, 0.012], [0.005, 0.010])
    assert compared(few, many) == {
        "few_claim_us": 10_000.0,
        "claim_us": 12_000.0,
        "ratio": 1.2,
        "few_claim_cpu_us": 5_000.0,
        "claim_cpu_us": 7_500.0,
        "cpu_ratio": 1.5,
    }


async def test_an_engine_must_be_known(tmp_path: Path):
    with pytest.raises(InvalidRequest, match="unknown engine 'rabbit'"):
        await backlog.backlog(tmp_path, 10, lambda what, share: None, "rabbit")
