"""Leftovers in the parts of a platform: once everything is over they hold nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ...runtime.worker import Worker
from ...scheduler.server import SchedulerServer
from ...scheduler.view import inspect
from ...tailers.pumps.relay_pump import RelayPump
from ...tailers.supervisor import Tailers
from .host import Host
from .kernel import Kernel


def still_held(hosts: Iterable[Host]) -> Iterator[str]:
    """Lines about what is left in windows, credit, lanes, slots and leases."""
    for host in hosts:
        for process in host.processes:
            for what in _of_process(process):
                yield f"{process.name} holds {what}"
        for part in (*host.parts, host.tailers) if host.up else ():
            for what in _held(part):
                yield f"{host.name} holds {what}"


def _of_process(process: Kernel) -> Iterator[str]:
    inside = process.inside
    if inside.ends.inside:
        yield f"{len(inside.ends.inside)} items whose end nobody was told"
    engine = inside.engine
    if engine is None:
        return
    if engine.hard or any(runner.key or runner.counted for runner in engine._runners) or any(engine._threads._runs):
        yield "the time-outs or places of runs that are over"


def _held(part: Any) -> Iterator[str]:
    if isinstance(part, SchedulerServer):
        yield from _of_scheduler(part)
    elif isinstance(part, Worker):
        yield from _of_worker(part)
    elif isinstance(part, Tailers):
        yield from _of_tailers(part)


def _of_scheduler(part: SchedulerServer) -> Iterator[str]:
    seen = inspect(part.core, part.id, 0.0)
    for lane in seen.lanes:
        if lane.waiting or lane.running:
            yield f"{lane.waiting} items that wait and {lane.running} that run in a lane of {lane.function}"
    for worker in seen.workers:
        if worker.assigned:
            yield f"{worker.assigned} items for {worker.name}"
    for tailer in seen.tailers:
        if tailer.in_flight:
            yield f"{tailer.in_flight} items of {tailer.name}"


def _of_worker(part: Worker) -> Iterator[str]:
    inside = part._supervisor.inside()
    if inside:
        yield f"{len(inside)} items in its executors or before them"
    if part._leases._pinned:
        yield f"the deadlines of {len(part._leases._pinned)} items"


def _of_tailers(part: Tailers) -> Iterator[str]:
    for tailer in part._tailers.values():
        pump: Any = tailer._pump
        if pump is None:
            continue
        if isinstance(pump, RelayPump):
            if rows := pump.status().facts.in_flight:
                yield f"{rows} rows of {tailer.config.name}"
            continue
        flights, credit = getattr(pump, "flights", {}), pump.session.credit
        if flights or credit.out:
            yield f"{len(flights)} flights and credit for {credit.out} items of {tailer.config.name}"
