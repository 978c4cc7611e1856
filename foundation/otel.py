"""OpenTelemetry: turns it on for a process, and imports its SDK, which no other file does.

It is on when the environment names an endpoint, by OpenTelemetry's own variables: OTEL_EXPORTER_OTLP_ENDPOINT, or
OTEL_EXPORTER_OTLP_TRACES_ENDPOINT and OTEL_EXPORTER_OTLP_METRICS_ENDPOINT. Also OTEL_SDK_DISABLED, OTEL_SERVICE_NAME,
OTEL_RESOURCE_ATTRIBUTES, OTEL_TRACES_SAMPLER with its OTEL_TRACES_SAMPLER_ARG, OTEL_BSP_MAX_QUEUE_SIZE,
OTEL_BSP_SCHEDULE_DELAY, OTEL_METRIC_EXPORT_INTERVAL, and those of the exporter (headers, timeout, compression,
certificates).
"""

from __future__ import annotations

import importlib.util
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..model import metrics
from ..model.errors import ConfigError
from ..model.metrics import Sample
from . import tracing
from .span_queue import SpanQueue

if TYPE_CHECKING:
    from opentelemetry.sdk.resources import Resource

#: The share of items that is sampled where neither the environment nor a tailer's file says one.
RATIO = 0.01
#: Seconds that a process waits at its end for its last spans to be exported.
LAST = 1.0

_SAMPLERS = {
    "always_on": 1.0,
    "always_off": 0.0,
    "parentbased_always_on": 1.0,
    "parentbased_always_off": 0.0,
}
_BY_RATIO = ("traceidratio", "parentbased_traceidratio")


class Settings:
    """The settings of a process, by the environment. Raises ConfigError for values that are not possible."""

    def __init__(self, part: str, environment: Mapping[str, str], number: int = 0) -> None:
        self.part = part
        self.number = number
        general = environment.get("OTEL_EXPORTER_OTLP_ENDPOINT", "").strip()
        self.traces = bool(general or environment.get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "").strip())
        self.metrics = bool(general or environment.get("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "").strip())
        self.traces = self.traces and environment.get("OTEL_TRACES_EXPORTER", "otlp").strip() != "none"
        self.metrics = self.metrics and environment.get("OTEL_METRICS_EXPORTER", "otlp").strip() != "none"
        self.ratio = _ratio(environment)
        self.queue = int(_number(environment, "OTEL_BSP_MAX_QUEUE_SIZE", 8192.0))
        self.every = _number(environment, "OTEL_BSP_SCHEDULE_DELAY", 5000.0) / 1000
        self.interval = _number(environment, "OTEL_METRIC_EXPORT_INTERVAL", 60_000.0) / 1000

    def resource(self) -> Resource:
        """The name of the process in its spans and metrics."""
        from opentelemetry.sdk.resources import Resource

        named: dict[str, str | int] = {
            "service.name": f"tailrace-{self.part}",
            "service.namespace": "tailrace",
            "service.instance.id": f"{os.uname().nodename}:{self.number or os.getpid()}",
            "process.pid": self.number or os.getpid(),
        }
        return Resource.create({**named, **_named_by_others()})


def _named_by_others() -> dict[str, str]:
    name = os.environ.get("OTEL_SERVICE_NAME", "").strip()
    return {"service.name": name} if name else {}


def _ratio(environment: Mapping[str, str]) -> float:
    sampler = environment.get("OTEL_TRACES_SAMPLER", "").strip().lower()
    if sampler in _SAMPLERS:
        return _SAMPLERS[sampler]
    if sampler and sampler not in _BY_RATIO:
        known = ", ".join([*_SAMPLERS, *_BY_RATIO])
        raise ConfigError(f"OTEL_TRACES_SAMPLER is {sampler!r}: expected one of {known}")
    ratio = _number(environment, "OTEL_TRACES_SAMPLER_ARG", 1.0 if sampler else RATIO)
    if ratio > 1:
        raise ConfigError(f"OTEL_TRACES_SAMPLER_ARG is {ratio:g}: expected a share from 0 to 1")
    return ratio


def _number(environment: Mapping[str, str], name: str, default: float) -> float:
    said = environment.get(name, "").strip()
    if not said:
        return default
    try:
        value = float(said)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise ConfigError(f"{name} is {said!r}: expected a number, zero or more")
    return value


_settings: Settings | None = None
_queue: SpanQueue | None = None


def settings() -> Settings | None:
    """The settings of this process; None: OpenTelemetry is off."""
    return _settings


def wants_metrics() -> bool:
    """Whether metrics of this process are sent to a collector."""
    return _settings is not None and _settings.metrics


def queue() -> SpanQueue | None:
    """The queue of this process's spans; None: none are made."""
    return _queue


def set_up(part: str, environment: Mapping[str, str], number: int = 0) -> None:
    """Turns OpenTelemetry on for this process if the environment says so. Its SDK is not imported before there is
    something to export.

    Raises ConfigError where the extra is missing, and for a variable with an impossible value.
    """
    global _settings, _queue  # noqa: PLW0603 - of a process there is one, as of its logs
    if not tracing.wanted(environment):
        return
    if any(importlib.util.find_spec(name) is None for name in ("opentelemetry", "requests")) or (
        importlib.util.find_spec("opentelemetry.sdk") is None
        or importlib.util.find_spec("opentelemetry.exporter.otlp.proto.http") is None
    ):
        raise ConfigError(
            "the environment names an endpoint of OpenTelemetry, whose SDK is not installed: "
            'pip install "tailrace[otel]", or unset OTEL_EXPORTER_OTLP_ENDPOINT'
        )
    told = _settings = Settings(part, environment, number)
    logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)  # we log a failure once, it does each time
    if told.traces:
        _queue = SpanQueue(lambda: _exporter(told), ratio=told.ratio, most=told.queue, every=max(0.01, told.every))
        tracing.install(_queue)


def samples() -> list[Sample]:
    """Metrics of the export of traces in this process; none where it is off."""
    if _queue is None:
        return []
    found = [Sample(metrics.SPANS_EXPORTED, (), _queue.exported)]
    return [*found, *(Sample(metrics.SPANS_DROPPED, (("why", why),), n) for why, n in _queue.dropped.items())]


def start() -> None:
    """Makes the exporter ready, in a thread; for a process that will not fork any more."""
    if _queue is not None:
        _queue.start()


def close() -> None:
    """Exports waiting spans, for a moment at most. Called before the interpreter begins to end, which lets no thread
    start."""
    if _queue is not None:
        _queue.close(LAST)


def _exporter(told: Settings) -> Callable[[Sequence[Any]], bool]:
    """The exporter of spans: of our own records, and of the SDK's spans that user code made."""
    from .otlp import SpanExporter

    return SpanExporter(told.resource()).export
