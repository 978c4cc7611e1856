"""The scenario `rivals` runs whole, small, with those rivals that need nothing to be installed."""

from pathlib import Path

import pytest

from tailrace.bench.kafka import Broker
from tailrace.bench.kafka_rivals import rivals
from tailrace.bench.rivals.running import chosen


@pytest.mark.long(minutes=1)
async def test_tailrace_and_a_loop_by_hand_on_one_broker(kafka: str, tmp_path: Path) -> None:
    figures = await rivals(Broker(kafka, "kafka-python"), chosen("loop"), tmp_path, 20_000, lambda what, share: None)
    assert figures["items_per_s"] > 0 and figures["loop_items_per_s"] > 0
    assert figures["loop_ratio"] == pytest.approx(figures["items_per_s"] / figures["loop_items_per_s"])
