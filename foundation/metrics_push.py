"""Sends metrics to an OpenTelemetry collector once in a while: the samples that `/metrics` answers with."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Sequence
from itertools import groupby
from typing import Any

from ..model.errors import TailraceError
from ..model.metrics import Metric, Sample
from .clock import SYSTEM_CLOCK, Clock
from .duties import Duties
from .otel import LAST, Settings
from .own_thread import OwnThread
from .proxies import exporting

_LOG = logging.getLogger("tailrace.telemetry")


class MetricsPush:
    """The sender of metrics: a Part. The collector may be away, slow or refuse: one export is under way at a time, in a
    thread of its own that no stop waits for, and samples that were not sent are in the next one, since all are counted
    from when their part began."""

    def __init__(
        self, settings: Settings, ask: Callable[[], Awaitable[Sequence[Sample]]], clock: Clock = SYSTEM_CLOCK
    ) -> None:
        self._settings = settings
        self._ask = ask
        self._clock = clock
        self._began = clock.wall()
        self.duties = Duties("push of metrics")
        self._failing = False
        self._thread = OwnThread("tailrace-metrics", math.inf)  # the exporter has a time-out of its own
        self._export: Callable[[Any], bool] | None = None

    async def start(self) -> None:
        """Begins to send."""
        self._began = self._clock.wall()
        self.duties.begin(self._run(), "push-metrics")

    async def drain(self, timeout: float) -> None:
        """Sends the samples of now, unless that takes long."""
        try:
            async with asyncio.timeout(min(LAST, timeout)):
                await self._push()
        except Exception as error:
            _LOG.debug("the last numbers were not sent: %r", error)

    async def stop(self) -> None:
        """Ends the sending. Harmless twice."""
        await self.duties.end()
        self._thread.close()

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(self._settings.interval)
            try:
                well = await self._push()
            except TailraceError:
                continue  # the part does not know its numbers now
            except Exception as error:
                _LOG.debug("an export of metrics failed: %r", error)
                well = False
            if well is self._failing:
                self._failing = not well
                if well:
                    _LOG.info("metrics are exported again")
                else:
                    _LOG.warning("metrics cannot be exported: their endpoint is away, slow or refuses")

    async def _push(self) -> bool:
        found = list(await self._ask())
        return await self._thread.call(self._send, found, self._clock.wall())

    def _send(self, found: Sequence[Sample], now: float) -> bool:
        if self._export is None:
            self._export = _exporter()
        data = metrics_data(self._settings.resource(), found, self._began, now)
        return self._export(data)


def _exporter() -> Callable[[Any], bool]:
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.sdk.metrics.export import MetricExportResult

    exporter = OTLPMetricExporter(**exporting("METRICS"))
    return lambda data: exporter.export(data) is MetricExportResult.SUCCESS


def metrics_data(resource: Any, found: Sequence[Sample], began: float, now: float) -> Any:
    """Samples as the SDK's metrics, cumulative since `began`; times are wall clock seconds."""
    from opentelemetry.sdk.metrics.export import MetricsData, ResourceMetrics, ScopeMetrics
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope

    span = int(began * 1e9), int(now * 1e9)
    metrics = [_metric(metric, list(group), *span) for metric, group in groupby(found, lambda sample: sample.metric)]
    scope = ScopeMetrics(InstrumentationScope("tailrace"), metrics, "")
    return MetricsData([ResourceMetrics(resource, [scope], "")])


def _metric(metric: Metric, samples: Sequence[Sample], began: int, now: int) -> Any:
    from opentelemetry.sdk.metrics import Exemplar
    from opentelemetry.sdk.metrics import export as sdk

    cumulative = sdk.AggregationTemporality.CUMULATIVE
    data: Any
    if metric.bounds:
        points = []
        for sample in samples:
            counts = sample.counts
            assert counts is not None
            exemplars = [
                Exemplar({}, each.value, int(each.at * 1e9), 0, int(each.trace_id, 16))
                for each in counts.exemplars.values()
            ]
            points.append(
                sdk.HistogramDataPoint(
                    dict(sample.labels),
                    began,
                    now,
                    counts.count,
                    counts.sum,
                    list(counts.buckets),
                    list(metric.bounds),
                    0.0,
                    max(metric.bounds),
                    exemplars,
                )
            )
        data = sdk.Histogram(points, cumulative)
    else:
        numbers = [sdk.NumberDataPoint(dict(each.labels), began, now, each.value) for each in samples]
        data = sdk.Sum(numbers, cumulative, True) if metric.rises else sdk.Gauge(numbers)
    return sdk.Metric(metric.name, metric.help, metric.unit, data)
