"""Exposition: samples in Prometheus' text format 0.0.4, and in OpenMetrics 1.0, which has exemplars too."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from .histogram import Counts, Exemplar
from .metrics import Metric, Sample


def prometheus_text(found: Sequence[Sample]) -> str:
    """The samples in Prometheus' text format 0.0.4. Samples of one metric must stand together."""
    return "".join(f"{line}\n" for line in _lines(found, openmetrics=False))


def openmetrics_text(found: Sequence[Sample]) -> str:
    """The samples in OpenMetrics 1.0. Samples of one metric must stand together."""
    return "".join(f"{line}\n" for line in (*_lines(found, openmetrics=True), "# EOF"))


def _lines(found: Sequence[Sample], *, openmetrics: bool) -> Iterator[str]:
    told: Metric | None = None
    for metric, labels, value, counts in found:
        if metric is not told:
            told = metric
            family = metric.prometheus.removesuffix("_total") if openmetrics else metric.prometheus
            yield f"# HELP {family} {_escaped(metric.help) if openmetrics else metric.help}"
            yield f"# TYPE {family} {metric.kind}"
        if counts is None:
            yield f"{metric.prometheus}{_inside(labels)} {value:.15g}"
        else:
            yield from _histogram(metric, labels, counts, openmetrics=openmetrics)


def _histogram(
    metric: Metric, labels: tuple[tuple[str, str], ...], counts: Counts, *, openmetrics: bool
) -> Iterator[str]:
    so_far = 0
    bounds = [*(str(float(bound)) for bound in metric.bounds), "+Inf"]  # OpenMetrics asks for one form: 5.0
    for at, (bound, count) in enumerate(zip(bounds, counts.buckets, strict=True)):
        so_far += count
        line = f"{metric.prometheus}_bucket{_inside((*labels, ('le', bound)))} {so_far}"
        exemplar = counts.exemplars.get(at) if openmetrics else None
        yield line if exemplar is None else f"{line} {_exemplar(exemplar)}"
    yield f"{metric.prometheus}_sum{_inside(labels)} {counts.sum:.15g}"
    yield f"{metric.prometheus}_count{_inside(labels)} {so_far}"


def _exemplar(exemplar: Exemplar) -> str:
    return f'# {{trace_id="{exemplar.trace_id}"}} {exemplar.value:.15g} {exemplar.at:.3f}'


def _inside(labels: Iterable[tuple[str, str]]) -> str:
    inside = ",".join(f'{name}="{_escaped(text)}"' for name, text in labels)
    return f"{{{inside}}}" if inside else ""


def _escaped(text: str) -> str:
    text = text.encode("utf-8", "backslashreplace").decode()  # half a surrogate pair cannot be sent
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
