"""Rights of tailers: each kind is checked where it is named, and kinds that may not be pushed at all are closed."""

from __future__ import annotations

import pytest
from unit.scheduler.test_scheduler_core import core, worker_of

from tailrace.model.errors import InvalidRequest
from tailrace.model.grants import GrantedRights
from tailrace.model.rights import right_of
from tailrace.model.workload import Kind
from tailrace.scheduler.core import Core
from tailrace.scheduler.endpoints import TailerEnd
from tailrace.scheduler.rules.push_rights import PushRights
from tailrace.testing.clock import ManualClock
from tailrace.wire.convert import KindWriter, write_items
from tailrace.wire.link import Link
from tailrace.wire.v1 import scheduler_pb2 as pb


def granted(*rights: str) -> GrantedRights:
    return GrantedRights("tailer crm-1 of fleet f1", tuple(map(right_of, rights)))


def end_of(made: Core, *rights: str) -> TailerEnd:
    tailer = made.attach_tailer("t", "t", 0.0)
    made.tailer_connected(tailer)
    return TailerEnd(made, tailer, Link(), ManualClock(monotonic=0.0), lambda: None, granted=granted(*rights))


def pushing(kinds: KindWriter, number: int, *those: Kind) -> pb.TailerFrame:
    frame = pb.TailerFrame()
    push = frame.pushes.add(flight=number, fence=number, lease_request=0, lease=28.0)
    names = [f"{number}-{index}" for index in range(len(those))]
    write_items(push.items, kinds, (list(those), names, [b""] * len(those), [1] * len(those)), {})
    return frame


@pytest.mark.parametrize(
    ("kind", "needs"),
    [
        (Kind("a", 1, "", "acme"), ""),
        (Kind("a", 1, "mails", "acme"), ""),
        (Kind("a", 1, "", "other"), "submit:a@other"),
        (Kind("a", 1), "submit:a"),
        (Kind("b", 1, "", "acme"), "submit:b@acme"),
    ],
)
def test_a_kind_that_may_not_be_pushed_is_refused_with_its_frame(kind: Kind, needs: str) -> None:
    made = core()
    worker_of(made, names=("a", "b"))
    end, writer = end_of(made, "submit:a@acme"), KindWriter()
    frame = pushing(writer, 1, Kind("a", 0, "", "acme"), kind)
    if not needs:
        end.accept(frame)
        end.accept(pushing(writer, 2, kind))  # which is not named again
        assert set(end.tailer.held.flights) == {1, 2}
        return
    with pytest.raises(InvalidRequest, match=f"crm-1 of fleet f1 may not do this: it needs the right {needs}, and has"):
        end.accept(frame)
    assert not end.tailer.held.flights and not end.tailer.held.items


def test_who_has_no_right_pushes_nothing_and_who_has_no_grant_anything() -> None:
    made = core()
    worker_of(made, names=("a", "b"))
    with pytest.raises(InvalidRequest, match="needs the right submit:a, and has none"):
        end_of(made).accept(pushing(KindWriter(), 1, Kind("a")))
    tailer = made.attach_tailer("u", "u", 0.0)
    TailerEnd(made, tailer, Link(), ManualClock(monotonic=0.0), lambda: None).accept(
        pushing(KindWriter(), 1, Kind("a"))
    )
    assert tailer.held.flights


def test_functions_of_which_nothing_may_be_pushed_are_closed_to_that_tailer_alone() -> None:
    # Given a worker of two functions, and a tailer that may push one of them for a tenant
    made = core()
    worker_of(made, names=("a", "b"))
    end = end_of(made, "submit:a@acme")
    other = made.attach_tailer("u", "u", 0.0)
    # When it is told of its credit, Then the other one is closed, and it is said why
    told = end.compose()
    assert told is not None and {cell.function for cell in told.credit.cells} == {"a", "b"}
    assert told.credit.closed_changed
    [closed] = told.credit.closed
    assert (closed.function, closed.drop, closed.probes) == ("b", False, 0)
    assert "crm-1 of fleet f1 may not do this: it needs the right submit:b, and has submit:a@acme" in closed.reason
    # And it stays so when gates change, and when functions come
    made.apply([], [], [], 1, 0.0)
    end.tailer.closed = frozenset()
    told = end.compose()
    assert told is not None and [each.function for each in told.credit.closed] == ["b"]
    worker_of(made, names=("c",), session="v")
    told = end.compose()
    assert told is not None and sorted(each.function for each in told.credit.closed) == ["b", "c"]
    # And nobody else hears of it
    assert not other.closed


def test_a_function_is_asked_about_once() -> None:
    rights = PushRights(granted("submit:crm.*"))
    assert rights.hears(["crm.a", "pay"]) and not rights.hears(["crm.a", "pay", "crm.b"])
    assert rights.hears(["refund"])
    assert sorted(each.function for each in rights.closed) == ["pay", "refund"]
