"""Reports of a pool: whom it asks, and tells, about its items."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from ..model.histogram import Histograms
from ..model.metrics import RUN_DURATION
from ..model.workload import Ended


@dataclass(frozen=True, slots=True)
class Reports:
    """The listener of a pool. Keys name items; `earliest` is the deadline of the earliest of them, 0 for none.

    ended    (succeeded, ended)
    notes    progress notes
    waits    items that wait for other work from now on, and items that go on
    limits   the pool's limit changed
    times    takes how long runs took, by function and outcome
    """

    earliest: Callable[[Iterable[int]], float]
    ended: Callable[[list[int], dict[int, Ended]], None]
    notes: Callable[[list[tuple[int, str]]], None]
    waits: Callable[[list[int], list[int]], None]
    limits: Callable[[], None]
    times: Histograms = field(default_factory=RUN_DURATION.histograms)
