"""The scenario `limits`: the cost of every kind of limit, none of which is ever reached: in the scheduler's core alone,
and in `stream` and `queue` as a whole.

The core: one process, no sockets; flights of 256 items of random kinds are pushed, take their turn, are assigned, and
reported. CPU seconds are counted, so that neighbours on the machine change little. The whole: platforms with and
without limits, in turns.
"""

from __future__ import annotations

import json
import random
import shutil
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from ..model.function_spec import FunctionSpec
from ..model.lease import LeaseSizes
from ..model.limits import Quota, quota_to_dict
from ..model.workload import FLIGHT_ITEMS, INDEX_BITS, Flight, Kind, Outcomes
from ..scheduler.config import SchedulerConfig
from ..scheduler.core import Core
from ..scheduler.rules.placement import PoolLimits
from .figures import Figures, Progress
from .limits_functions import DOWNSTREAMS, FUNCTIONS
from .percentiles import median
from .scenarios import Crowd, queue, stream

#: Items of a flight, and rounds in which each form is measured, in turns.
BATCH, ROUNDS = 256, 3
#: Items of each run of `stream` and `queue`, for each of the core's.
WHOLE = {"stream": 4, "queue": 2}
#: Functions and tenants of the two sizes.
SIZES = {"": (1_000, 100), "large_": (10_000, 1_000)}
#: A limit that is always paid and never reached.
FREE: dict[str, Any] = {"concurrency": 1_000_000, "rate": 1e8}


async def limits(folder: Path, count: int, progress: Progress) -> Figures:
    """Items a second through the core, for both sizes, with every kind of limit and without any; and of `stream` and
    `queue` with 1,000 functions × 100 tenants, `ratio_on_off` being the lower of the ratios of their medians."""
    figures: Figures = {"items": float(count)}
    for place, (prefix, (functions, tenants)) in enumerate(SIZES.items()):
        flights = _flights(functions, tenants, count)
        best = {True: 0.0, False: 0.0}
        for number in range(ROUNDS):
            for limited in (True, False):
                progress(f"{functions:,} × {tenants:,}", (place + number / ROUNDS) / len(SIZES))
                best[limited] = max(best[limited], count / _seconds(functions, flights, limited=limited))
        figures[f"{prefix}core_items_per_s"] = best[True]
        figures[f"{prefix}core_items_per_s_off"] = best[False]
    return figures | await _whole(folder, count, progress)


async def _whole(folder: Path, count: int, progress: Progress) -> Figures:
    """Runs `stream` and `queue` as their users run them, with and without limits."""
    tenants = SIZES[""][1]
    crowd = Crowd(f"{__package__}.limits_functions", FUNCTIONS, tenants)
    configs = {"on": folder / "on", "off": folder / "off"}
    for form, config in configs.items():
        config.mkdir()
        quotas = _quotas(FUNCTIONS) if form == "on" else []
        (config / "quotas.yaml").write_text(json.dumps({"quotas": [quota_to_dict(quota) for quota in quotas]}))
    figures: Figures = {}
    scenarios: dict[str, Callable[..., Awaitable[Figures]]] = {"stream": stream, "queue": queue}
    for name, scenario in scenarios.items():
        rates: dict[str, list[float]] = {form: [] for form in configs}
        for number in range(ROUNDS):
            for form, config in configs.items():
                place = folder / f"{name}-{form}-{number}"
                place.mkdir()
                found = await scenario(place, WHOLE[name] * count, progress, config, crowd=crowd)
                rates[form].append(found["items_per_s"])
                shutil.rmtree(place)
        figures |= {f"{name}_items_per_s_{form}": median(each) for form, each in rates.items()}
        figures[f"{name}_ratio_on_off"] = figures[f"{name}_items_per_s_on"] / figures[f"{name}_items_per_s_off"]
    return figures | {"ratio_on_off": min(figures["stream_ratio_on_off"], figures["queue_ratio_on_off"])}


def _quotas(functions: int) -> list[Quota]:
    quotas = [Quota(f"f{number}", weight=1.0, **FREE) for number in range(functions)]
    quotas += [Quota(downstream=f"d{number}", **FREE) for number in range(DOWNSTREAMS)]
    quotas += [Quota(downstream=f"d{number}", per="tenant", **FREE) for number in range(DOWNSTREAMS)]
    return [*quotas, Quota(per="tenant", **FREE), Quota(tenant="t0", weight=2.0, **FREE)]


def _flights(functions: int, tenants: int, count: int) -> list[tuple[list[Kind], list[str]]]:
    """Flights of random kinds as a session gives them: each kind is one object, however often it comes."""
    chance, known = random.Random(1), dict[Kind, Kind]()

    def kind() -> Kind:
        made = Kind(f"f{chance.randrange(functions)}", 1, "", f"t{chance.randrange(tenants)}")
        return known.setdefault(made, made)

    return [
        ([kind() for _ in range(BATCH)], [f"{number}-{index}" for index in range(BATCH)])
        for number in range(count // BATCH)
    ]


def _seconds(functions: int, flights: list[tuple[list[Kind], list[str]]], *, limited: bool) -> float:
    core = Core(SchedulerConfig(slow_start=0.0), LeaseSizes(), ready=True)
    specs = [FunctionSpec(f"f{number}", downstreams=(f"d{number % DOWNSTREAMS}",)) for number in range(functions)]
    worker = core.attach_worker("worker", "worker", 0.0)
    pools = [PoolLimits("default", [spec.name for spec in specs], FLIGHT_ITEMS, FLIGHT_ITEMS)]
    core.worker_connected(worker, specs, pools, 0.0)
    tailer = core.attach_tailer("tailer", "tailer", 0.0)
    core.apply([], _quotas(functions) if limited else [], specs, 1, 0.0)
    payloads, attempts = [b""] * BATCH, [1] * BATCH
    done = 0
    began = time.process_time()
    for number, (kinds, ids) in enumerate(flights, 1):
        now = number / 1e6
        core.push(tailer, Flight(number, number, kinds, ids, payloads, attempts), 0, 1e9, now)
        core.turn(now, 0.0)
        while worker.assignments:
            made = worker.assignments.popleft()
            base = made.flight << INDEX_BITS
            core.report(worker, Outcomes(list(range(base, base + len(made.items))), {}), now, 0.0)
        done += len(tailer.succeeded)
        tailer.succeeded = []
    seconds = time.process_time() - began
    if done != len(flights) * BATCH:
        raise RuntimeError(f"only {done} of {len(flights) * BATCH} items came back")
    return seconds
