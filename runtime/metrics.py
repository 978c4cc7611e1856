"""A worker's metrics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..model import metrics
from ..model.histogram import Histograms
from ..model.metrics import Sample, of_histograms, sorted_samples
from ..model.outcome import Outcome
from .pool import Pool


def samples(
    pools: Iterable[Pool], ended: Mapping[int, int], sessions: int, times: Histograms | None = None
) -> list[Sample]:
    """Metrics of the pools, of items ended by outcome, of run times, and the number of schedulers it is attached to; in
    the order of the catalogue."""
    found = [Sample(metrics.SESSIONS, (), sessions)]
    if times is not None:
        found += of_histograms(metrics.RUN_DURATION, times)
    found += [
        Sample(metrics.WORKER_ENDED, (("outcome", Outcome(outcome).name.lower()),), count)
        for outcome, count in sorted(ended.items())
    ]
    for pool in pools:
        labels = (("pool", pool.name),)
        found += [
            Sample(metrics.SLOTS, labels, pool.slots),
            Sample(metrics.ASSIGNED, labels, len(pool.inside())),
            Sample(metrics.EXECUTORS, labels, len(pool.executors)),
            Sample(metrics.DEATHS, labels, pool.deaths),
        ]
    return sorted_samples(found)
