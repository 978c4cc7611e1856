"""Spans on their way out: adding one never waits, and spans that do not get through are counted."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Sequence
from typing import Any

import pytest

from tailrace.foundation.otel import RATIO, Settings
from tailrace.foundation.span_queue import SpanQueue
from tailrace.model.errors import ConfigError


class Place:
    """An exporter whose endpoint can be away, or slow."""

    def __init__(self) -> None:
        self.got: list[Any] = []
        self.well = True
        self.hold = threading.Event()
        self.hold.set()
        self.asked = threading.Event()

    def export(self, spans: Sequence[Any]) -> bool:
        self.asked.set()
        assert self.hold.wait(10)
        if self.well:
            self.got += spans
        return self.well


def queue(place: Place, **how: Any) -> SpanQueue:
    return SpanQueue(lambda: place.export, ratio=1.0, every=0.01, **how)


def test_spans_are_exported_in_batches_and_all_that_wait_before_it_closes() -> None:
    place = Place()
    spans = queue(place, batch=10)
    for start in range(0, 100, 5):
        spans.add(range(start, start + 5))
    spans.close(10)
    assert place.got == list(range(100))
    assert (spans.exported, spans.dropped) == (100, {"full": 0, "refused": 0})


def test_a_slow_endpoint_costs_no_more_than_the_queues_bound_and_the_rest_is_counted() -> None:
    # Given an endpoint that does not answer
    place = Place()
    place.hold.clear()
    spans = queue(place, most=50, batch=10)
    spans.add(range(10))
    assert place.asked.wait(10)
    # When far more comes than there is room for
    for number in range(100):
        spans.add([number] * 10)
    # Then nobody waited, and what did not fit is counted
    assert spans.dropped["full"] == 1000 - 50
    place.hold.set()
    spans.close(10)
    assert spans.exported == 60
    assert spans.exported + sum(spans.dropped.values()) == 1010


def test_an_endpoint_that_refuses_or_raises_is_counted_and_tried_again() -> None:
    place = Place()
    place.well = False
    spans = queue(place, batch=10)
    spans.add(range(10))
    assert place.asked.wait(10)
    spans.close(10)
    assert spans.dropped["refused"] == 10

    def fails() -> Any:
        raise OSError("no such library")

    broken = SpanQueue(fails, ratio=1.0, every=0.01)
    broken.add(range(3))
    broken.close(10)
    assert sum(broken.dropped.values()) == 3


def test_an_end_does_not_wait_for_an_endpoint_that_hangs() -> None:
    place = Place()
    place.hold.clear()
    spans = queue(place, batch=1)
    spans.add(range(5))
    assert place.asked.wait(10)
    spans.close(0.01)
    assert spans.dropped["full"] == 4
    place.hold.set()


def test_the_environment_says_how_much_is_sampled() -> None:
    def ratio(**said: str) -> float:
        return Settings("node", said).ratio

    assert ratio() == RATIO
    assert ratio(OTEL_TRACES_SAMPLER_ARG="0.5") == 0.5
    assert ratio(OTEL_TRACES_SAMPLER="always_on") == 1
    assert ratio(OTEL_TRACES_SAMPLER="parentbased_always_off") == 0
    assert ratio(OTEL_TRACES_SAMPLER="traceidratio", OTEL_TRACES_SAMPLER_ARG="0.25") == 0.25
    for wrong in (
        {"OTEL_TRACES_SAMPLER": "jaeger_remote"},
        {"OTEL_TRACES_SAMPLER_ARG": "two"},
        {"OTEL_TRACES_SAMPLER_ARG": "2"},
        {"OTEL_BSP_MAX_QUEUE_SIZE": "-1"},
        {"OTEL_METRIC_EXPORT_INTERVAL": "inf"},
    ):
        with pytest.raises(ConfigError, match=next(iter(wrong))):
            Settings("node", wrong)


@pytest.mark.parametrize("module", ["assembly.node", "runtime.executor_main", "scheduler.server", "cli"])
def test_off_means_that_nothing_of_it_is_imported(module: str) -> None:
    code = (
        f"import sys; import tailrace.{module}; from tailrace.foundation import otel, telemetry, tracing;"
        "telemetry.set_up('node', environment={});"
        "print([m for m in sys.modules if m.startswith(('opentelemetry', 'requests'))], tracing.spans(), otel.queue())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[] None None"


def test_without_the_extra_it_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['opentelemetry'] = None; from tailrace.foundation import telemetry\n"
        "try: telemetry.set_up('node', environment={'OTEL_EXPORTER_OTLP_ENDPOINT': 'http://127.0.0.1:4318'})\n"
        "except Exception as error: print(type(error).__name__, error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("ConfigError") and "tailrace[otel]" in done.stdout
