"""A large request is checked a part at a time, and refused or stored whole all the same."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, cast

import pytest

from tailrace.foundation.clock import SYSTEM_CLOCK
from tailrace.gateway.config import GatewayConfig
from tailrace.gateway.known_functions import KnownFunctions
from tailrace.gateway.rules.recent_refusals import Refusals
from tailrace.gateway.submitter import COLUMN, PART, Submitter
from tailrace.model.errors import InvalidRequest, UnknownFunction
from tailrace.model.function_spec import FunctionSpec
from tailrace.stores.queue.queue import NewItem, Queue, Submitted
from tailrace.wire.gateway_messages import new_workload
from tailrace.wire.v1 import gateway_pb2 as pb


class Stored:
    """A queue that keeps all items it is given."""

    def __init__(self) -> None:
        self.sizes: list[int] = []

    async def submit(self, items: Sequence[NewItem]) -> list[Submitted]:
        self.sizes.append(len(items))
        return [Submitted(str(number), False) for number in range(len(items))]


def submitter(queue: Stored, **bounds: Any) -> Submitter:
    functions = KnownFunctions()
    functions.replace([FunctionSpec("index")])
    return Submitter(GatewayConfig.model_validate(bounds), cast(Queue, queue), functions, SYSTEM_CLOCK, Refusals())


def request(*functions: str) -> pb.SubmitRequest:
    return pb.SubmitRequest(workloads=[new_workload(function, b"{}") for function in functions])


async def test_a_lone_submission_does_not_wait_until_a_large_one_is_checked() -> None:
    queue = Stored()
    subject = submitter(queue)
    large = asyncio.create_task(subject.submit(request(*["index"] * (3 * PART + 1))))
    lone = asyncio.create_task(subject.submit(request("index")))
    assert len((await lone).ids) == 1
    assert len((await large).ids) == 3 * PART + 1
    assert queue.sizes == [1, 3 * PART + 1]


async def test_one_that_is_wrong_in_a_later_part_refuses_all_and_is_named_by_its_place() -> None:
    queue = Stored()
    wrong = request(*["index"] * (PART + 2), "indx", "index")
    with pytest.raises(UnknownFunction, match=f"workload {PART + 2} of {PART + 4}: .*; none was accepted"):
        await submitter(queue).submit(wrong)
    with pytest.raises(InvalidRequest, match="at most 10 are taken"):
        await submitter(queue, max_batch=10).submit(request(*["index"] * 11))
    assert not queue.sizes


async def test_a_lone_submission_does_not_wait_for_long_columns() -> None:
    # Given a large call in columns, and a lone one behind it
    queue = Stored()
    subject = submitter(queue, max_batch=10_000)
    columns = pb.Alike(forms=[new_workload("index", b"")], payloads=[b"{}"] * (3 * COLUMN + 1))
    large = asyncio.create_task(subject.submit(pb.SubmitRequest(alike=columns)))
    lone = asyncio.create_task(subject.submit(request("index")))

    # When both are answered, then the lone one was stored first
    assert len((await lone).ids) == 1
    assert len((await large).ids) == 3 * COLUMN + 1
    assert queue.sizes == [1, 3 * COLUMN + 1]


async def test_workloads_come_one_by_one_or_in_columns() -> None:
    both = request("index")
    both.alike.payloads.append(b"{}")
    with pytest.raises(InvalidRequest, match="expected one of them"):
        await submitter(Stored()).submit(both)
