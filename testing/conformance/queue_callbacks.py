"""The laws of callbacks of workloads: each end is told once it is there, once, and through restarts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from ...model.claim import Settle, State
from ...model.errors import InvalidRequest
from ...model.workload import Kind
from ...stores.queue.callback import WorkloadEnd, event_of
from ...stores.queue.intake import Callback
from ...stores.queue.queue import NewItem
from .queue_engine import LEASE, MAIL, QueueEngine, nothing, put, take, wanting

#: The function that is told, and what is around the event.
TOLD = Kind("told", 3, "ends", "ann")
CALLBACK = Callback(TOLD, b'{"event":', b"}")


async def told(engine: QueueEngine) -> list[dict[str, Any]]:
    """Claims and settles the callbacks that are due, and returns their events without `at`, which may not be in the
    future."""
    leased = await engine.queue.lease(wanting(TOLD), LEASE, 0)
    if leased is None:
        return []
    assert set(leased.kinds) == {TOLD}
    assert await engine.queue.settle(leased.fence, leased.ids, []) == []
    events = [json.loads(payload)["event"] for payload in leased.payloads]
    assert all(0 < event.pop("at") <= engine.now() + 1 for event in events)
    return events


def event(id: str, state: State, why: str = "") -> dict[str, Any]:
    """The event of an ended workload of MAIL, without `at`."""
    said: dict[str, Any] = json.loads(event_of(WorkloadEnd(id, MAIL.function, state.label, why, 0.0)))
    del said["at"]
    return said


async def out(engine: QueueEngine, *payloads: bytes) -> tuple[int, Sequence[str]]:
    """Submits workloads with a callback and claims them. Returns their fence and ids."""
    await put(engine, *(NewItem(MAIL, each, on_done=CALLBACK) for each in payloads))
    leased = await take(engine, wanting(MAIL))
    assert leased.payloads == [*payloads]
    return leased.fence, leased.ids


class CallbackLaws:
    """Laws of `on_done`, the callback of a workload."""

    @pytest.mark.parametrize("end", [State.FATAL_FAILURE, State.DROPPED, State.CANCELLED, State.EXPIRED])
    async def test_an_end_is_told_with_its_reason(self, engine: QueueEngine, end: State) -> None:
        fence, (first, second) = await out(engine, b"1", b"2")
        assert await told(engine) == []
        others = [Settle(first, fence, end, reason="no such street"), Settle(second, fence, end)]
        assert await engine.queue.settle(fence, [], others) == []
        assert await told(engine) == [event(first, end, "no such street"), event(second, end, end.label)]
        assert await told(engine) == []

    async def test_successes_are_told_in_their_order_beside_others_that_tell_nothing(self, engine: QueueEngine) -> None:
        ids = await put(engine, *(NewItem(MAIL, b"", on_done=CALLBACK if number % 3 else None) for number in range(60)))
        leased = await take(engine, wanting(MAIL))
        assert await engine.queue.settle(leased.fence, ids[:30], []) == []
        assert await told(engine) == [event(id, State.SUCCESS) for number, id in enumerate(ids[:30]) if number % 3]
        assert await engine.queue.settle(leased.fence, ids[30:], []) == []
        assert await told(engine) == [event(id, State.SUCCESS) for number, id in enumerate(ids) if number % 3][20:]

    async def test_what_is_said_again_is_told_once_and_what_is_refused_is_not(self, engine: QueueEngine) -> None:
        fence, (first, second) = await out(engine, b"1", b"2")
        assert await engine.queue.settle(fence - 1, [first], [Settle(second, fence - 1, State.DROPPED)]) != []
        assert await told(engine) == []
        for _ in range(2):
            assert await engine.queue.settle(fence, [first], [Settle(second, fence, State.DROPPED)]) == []
        assert await told(engine) == [event(first, State.SUCCESS), event(second, State.DROPPED, "dropped")]

    async def test_nobody_stores_one_of_the_platforms_own_but_who_tells_again(self, engine: QueueEngine) -> None:
        # Given an end that is told by one of the platform's own functions, which the queue stores itself
        own = Kind("tailrace.told", 3)
        [id] = await put(engine, NewItem(MAIL, b"", on_done=Callback(own, b"<", b">")))
        leased = await take(engine, wanting(MAIL))
        await engine.queue.settle(leased.fence, [id], [])
        first = await take(engine, wanting(own))
        # When somebody stores another one, then it is refused; where it was given up it is stored again
        with pytest.raises(InvalidRequest, match="as only the platform's own do"):
            await engine.queue.submit([NewItem(own, b"forged")])
        [again] = await engine.queue.tell_again([NewItem(own, first.payloads[0])])
        assert (await take(engine, wanting(own))).ids == [again.id]

    async def test_an_attempt_that_failed_is_no_end(self, engine: QueueEngine) -> None:
        fence, (id,) = await out(engine, b"")
        back = Settle(id, fence, State.RETRIABLE_FAILURE, attempts=1, reason="busy", outcome="failed")
        assert await engine.queue.settle(fence, [], [back]) == []
        assert await told(engine) == []
        leased = await take(engine, wanting(MAIL))
        await engine.queue.settle(leased.fence, leased.ids, [])
        assert await told(engine) == [event(id, State.SUCCESS)]

    async def test_a_cancellation_is_told_once_it_is_in_force(self, engine: QueueEngine) -> None:
        fence, (held, lost) = await out(engine, b"1", b"2")
        [waits] = await put(engine, NewItem(MAIL, b"3", on_done=CALLBACK))
        assert await engine.queue.cancel([held, lost, waits]) == ["requested", "requested", "cancelled"]
        assert await told(engine) == [event(waits, State.CANCELLED, "cancelled")]
        # One comes back, and the other's holder says nothing any more
        await engine.queue.settle(fence, [], [Settle(held, fence, State.RETRIABLE_FAILURE, attempts=1, reason="late")])
        assert [each["workload"] for each in await told(engine)] == [held]
        await engine.pass_time(LEASE + 1)
        assert await nothing(engine)
        assert await told(engine) == [event(lost, State.CANCELLED, "cancelled")]

    async def test_one_that_was_not_started_in_time_is_told(self, engine: QueueEngine) -> None:
        [id] = await put(engine, NewItem(MAIL, b"", expires_at=engine.now() + 0.5, on_done=CALLBACK))
        await engine.pass_time(1.0)
        assert await nothing(engine)
        assert [(each["workload"], each["state"]) for each in await told(engine)] == [(id, "expired")]

    async def test_what_was_submitted_before_tells_what_it_told(self, engine: QueueEngine) -> None:
        other = Callback(Kind("another", 2))
        [first] = await put(engine, NewItem(MAIL, b"", dedupe_key="k", on_done=CALLBACK))
        answers = await engine.queue.submit(
            [NewItem(MAIL, b"", dedupe_key="k", on_done=other), NewItem(MAIL, b"", dedupe_key="l")]
        )
        assert [each.duplicate for each in answers] == [True, False]
        leased = await take(engine, wanting(MAIL))
        await engine.queue.settle(leased.fence, leased.ids, [])
        assert await told(engine) == [event(first, State.SUCCESS)]
        assert await nothing(engine, wanting(other.kind))

    async def test_a_store_that_is_opened_again_tells_what_it_was_to(self, engine: QueueEngine) -> None:
        fence, (id,) = await out(engine, b"")
        await engine.reopen()
        assert await engine.queue.settle(fence, [id], []) == []
        await engine.reopen()
        assert await told(engine) == [event(id, State.SUCCESS)]

    async def test_ends_of_one_key_are_told_one_by_one(self, engine: QueueEngine) -> None:
        ids = await put(engine, *(NewItem(MAIL, b"", key="ann", on_done=CALLBACK) for _ in range(3)))
        for id in ids:
            leased = await take(engine, wanting(MAIL))
            assert leased.ids == [id]
            await engine.queue.settle(leased.fence, [], [Settle(id, leased.fence, State.FATAL_FAILURE, reason="no")])
            assert await told(engine) == [event(id, State.FATAL_FAILURE, "no")]

    async def test_what_tells_is_tried_again_as_any_workload(self, engine: QueueEngine) -> None:
        fence, (id,) = await out(engine, b"")
        await engine.queue.settle(fence, [id], [])
        leased = await take(engine, wanting(TOLD))
        back = Settle(leased.ids[0], leased.fence, State.RETRIABLE_FAILURE, attempts=1, reason="away")
        await engine.queue.settle(leased.fence, [], [back])
        assert await told(engine) == [event(id, State.SUCCESS)]


class NoCallbackLaws:
    """The promise of an engine that sends no callbacks: it says so before anything is stored."""

    async def test_what_is_to_tell_its_end_is_refused_whole(self, engine: QueueEngine) -> None:
        with pytest.raises(InvalidRequest, match=r"on_done: a queue on Redis sends no callbacks.*SQLite or PostgreSQL"):
            await engine.queue.submit([NewItem(MAIL, b""), NewItem(MAIL, b"", on_done=CALLBACK)])
        assert await nothing(engine)
