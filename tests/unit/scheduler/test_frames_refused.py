"""Frames that cannot be right are refused before anything of them counts, and an item that is named twice in one counts
once."""

from __future__ import annotations

import math

import pytest
from unit.scheduler.test_scheduler_core import WALL, core, flight, sent, tailer_of, worker_of

from tailrace.foundation.clock import SYSTEM_CLOCK
from tailrace.model.errors import InvalidRequest
from tailrace.model.limits import Quota
from tailrace.model.workload import Extra, Kind, Outcomes
from tailrace.scheduler.endpoints import TailerEnd
from tailrace.wire.convert import KindWriter, write_items
from tailrace.wire.link import Link
from tailrace.wire.v1 import scheduler_pb2 as pb


def pushing(frame: pb.TailerFrame, kinds: KindWriter, number: int, *, index: int = 0, lease: float = 28.0) -> None:
    """Adds a flight of two items, of which the one at `index` has something beside it."""
    push = frame.pushes.add(flight=number, fence=number, lease_request=0, lease=lease)
    names = [f"{number}-0", f"{number}-1"]
    write_items(push.items, kinds, ([Kind("a")] * 2, names, [b""] * 2, [1, 1]), {index: Extra(key="k")})


@pytest.mark.parametrize(("index", "lease"), [(2, 28.0), (1 << 31, 28.0), (0, math.nan), (0, math.inf), (0, -math.inf)])
def test_a_push_that_cannot_be_is_refused_whole(index: int, lease: float) -> None:
    made = core()
    tailer = tailer_of(made)
    end = TailerEnd(made, tailer, Link(), SYSTEM_CLOCK, lambda: None)
    frame, kinds = pb.TailerFrame(), KindWriter()
    # Given a push that is right, and one that is not
    pushing(frame, kinds, 1)
    pushing(frame, kinds, 2, index=index, lease=lease)
    # When both come in one frame, Then nothing of it is held
    with pytest.raises(InvalidRequest, match="flight 2"):
        end.accept(frame)
    assert not tailer.held.flights and not tailer.held.items


@pytest.mark.parametrize("lease", [math.nan, math.inf])
def test_a_lease_without_end_is_granted_by_nobody(lease: float) -> None:
    made = core()
    worker_of(made)
    tailer = tailer_of(made)
    made.push(tailer, flight(1, Kind("a")), 0, 28.0, 0.0)
    before = tailer.held.flights[1].until
    with pytest.raises(InvalidRequest, match="lease"):
        TailerEnd(made, tailer, Link(), SYSTEM_CLOCK, lambda: None).accept(
            pb.TailerFrame(grant=pb.LeaseGrant(request=0, lease=lease, flights=[1]))
        )
    assert tailer.held.flights[1].until == before


def test_a_run_that_is_said_twice_to_wait_and_to_go_on_does_so_once() -> None:
    # Given one that runs under a limit
    made = core()
    worker, tailer = worker_of(made, limit=4), tailer_of(made)
    made.apply([], [Quota("a", 2)], [], 1, 0.0)
    made.push(tailer, flight(1, Kind("a")), 0, 28.0, 0.0)
    made.turn(0.0, WALL)
    [running] = sent(made, worker, 0.0)
    [limit], pool = made.limits.charges.all(), worker.pools["default"]
    # When a frame names it twice, and one twice that nobody knows
    made.waits(worker, [running, running, 5, 5], [], 0.0)
    assert (limit.running, pool.assigned, pool.parents) == (0, 0, 1)
    made.waits(worker, [], [running, running, 5, 5], 0.0)
    # Then it counts once
    assert (limit.running, pool.assigned, pool.parents) == (1, 1, 0)
    made.report(worker, Outcomes([running], {}), 0.0, WALL)
    assert (limit.running, pool.assigned, pool.parents) == (0, 0, 0)
