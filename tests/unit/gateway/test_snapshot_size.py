"""The snapshot of everything in force never grows beyond one message to a scheduler: more is refused, with the
reason."""

from __future__ import annotations

import pytest

from tailrace.gateway.snapshot_size import MOST, check_functions, check_quotas_fit
from tailrace.model.errors import InvalidRequest
from tailrace.model.function_spec import FunctionSpec
from tailrace.model.limits import Quota, Snapshot
from tailrace.wire.channel import MAX_MESSAGE
from tailrace.wire.gateway_messages import snapshot_to_wire

LARGE = "x" * 16_000


def functions(count: int, start: int = 0) -> list[FunctionSpec]:
    return [FunctionSpec(f"f{number}", arguments=LARGE) for number in range(start, start + count)]


def test_functions_that_find_no_room_are_refused_and_those_that_are_there_are_not() -> None:
    # Given as many functions as there is room for
    known = Snapshot(7, functions=functions(MOST // 17_000))
    assert snapshot_to_wire(known).ByteSize() < MOST < MAX_MESSAGE
    check_functions(known, functions(10))
    # When a worker registers more, Then it hears why they are refused, and what to do
    with pytest.raises(InvalidRequest, match=r"these functions .* MiB \(.* at most 12 MiB .* register fewer functions"):
        check_functions(known, functions(200, start=10_000))
    # And where there is too much from before, what is there is registered all the same
    full = Snapshot(7, functions=functions(1_000))
    check_functions(full, functions(1_000))


def test_quotas_that_find_no_room_are_refused() -> None:
    known = Snapshot(7, functions=functions(MOST // 17_000))
    check_quotas_fit(known, [Quota("f1", rate=1.0)])
    with pytest.raises(InvalidRequest, match="these quotas"):
        check_quotas_fit(known, [Quota(tenant="t" * 90 + str(number), rate=1.0) for number in range(20_000)])
    # And where there is too much from before, fewer are taken
    full = Snapshot(7, functions=functions(1_000), quotas=[Quota("f1", rate=1.0), Quota("f2", rate=1.0)])
    check_quotas_fit(full, full.quotas[:1])
