"""The laws that every engine of the queue obeys. An engine's test derives from `QueueLaws` and yields, in a fixture
`engine`, an object like `QueueEngine`:

    class TestMyQueue(QueueLaws):
        @pytest.fixture
        async def engine(self, tmp_path):
            ...

`queue_model.py` holds the same queue against a model, with steps that nobody thought of.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Protocol

import pytest

from ...sdk.model.claim import Leased, Settle, State
from ...sdk.model.demand import Cell, Closed, Demand
from ...sdk.model.errors import InvalidPayload, InvalidRequest
from ...sdk.model.tries import KEPT, REASON_KEPT
from ...sdk.model.workload import FLIGHT_ITEMS, Kind
from ...stores.queue.lifecycle import LEASED, TERMINAL
from ...stores.queue.queue import NewItem, Queue

LEASE = 30.0
MAX_PAYLOAD = 1 << 20
MAIL = Kind("mail", 2)
URGENT = Kind("mail", 0)
LATER = Kind("mail", 3)
REPORT = Kind("report", 2)


class QueueEngine(Protocol):
    """What a test needs of an engine."""

    @property
    def queue(self) -> Queue:
        """Open; empty at first; refuses payloads beyond MAX_PAYLOAD bytes."""

    def now(self) -> float:
        """The store's wall clock, seconds."""

    async def pass_time(self, seconds: float) -> None:
        """Lets the store's clock move by so much: a clock of the test's own, or a sleep. A negative time is a clock
        that jumped back; an engine on which it cannot does nothing."""

    async def reopen(self) -> None:
        """Closes the store and opens it again over what it kept; `queue` may be another object then."""


def wanting(
    *kinds: Kind, each: int = 1000, total: int = 1000, max_bytes: int = 1 << 24, closed: Sequence[Closed] = ()
) -> Demand:
    """A demand for the cells of these kinds; none named: those of this file."""
    cells = {Cell(kind.function, kind.priority): each for kind in kinds or (MAIL, URGENT, LATER, REPORT)}
    return Demand(cells, frozenset(closed), total, max_bytes)


async def put(engine: QueueEngine, *items: NewItem) -> list[str]:
    """Submits items and returns their ids."""
    return [each.id for each in await engine.queue.submit(items)]


async def take(engine: QueueEngine, demand: Demand | None = None, seconds: float = LEASE) -> Leased:
    """A claim that must find something."""
    leased = await engine.queue.lease(demand or wanting(), seconds, 0)
    assert leased is not None, "nothing was due"
    return leased


async def nothing(engine: QueueEngine, demand: Demand | None = None) -> bool:
    """Whether nothing is due."""
    return await engine.queue.lease(demand or wanting(), LEASE, 0) is None


async def state(engine: QueueEngine, id: str) -> State:
    [status] = await engine.queue.status([id])
    assert status is not None
    return status.state


async def ages(engine: QueueEngine) -> dict[tuple[str, int], tuple[int, int]]:
    """Seconds that the oldest due item has waited and the highest attempt, by function and priority."""
    found = await engine.queue.ageing()
    assert len(found) == len({each[:2] for each in found}), "a function and priority is told once"
    return {(each.function, each.priority): (round(each.waited), each.attempts) for each in found}


class SubmittingLaws:
    """What a submission promises."""

    async def test_what_is_submitted_is_leased_untouched(self, engine: QueueEngine) -> None:
        payloads = [b"", b"\xff\x00 not text", b"x" * MAX_PAYLOAD, '"text" \u2028'.encode()]
        kind = Kind("mail", 2, "welcome", "ann")
        ids = await put(engine, *(NewItem(kind, payload) for payload in payloads))
        leased = await take(engine)
        assert dict(zip(leased.ids, leased.payloads, strict=True)) == dict(zip(ids, payloads, strict=True))
        assert set(leased.kinds) == {kind}
        assert leased.attempts == [1, 1, 1, 1]
        assert leased.extras == {}

    async def test_headers_key_and_expiry_come_along(self, engine: QueueEngine) -> None:
        until = engine.now() + 1000
        await put(engine, NewItem(MAIL, b"", key="ann", headers=(("trace", "1"), ("trace", "2")), expires_at=until))
        extra = (await take(engine)).extras[0]
        assert (extra.key, extra.headers) == ("ann", (("trace", "1"), ("trace", "2")))
        assert extra.expires_at == pytest.approx(until, abs=0.01)
        assert not extra.alone

    async def test_a_batch_with_one_bad_item_stores_nothing(self, engine: QueueEngine) -> None:
        for bad, error in (
            (NewItem(MAIL, b"x" * (MAX_PAYLOAD + 1)), InvalidPayload),
            (NewItem(MAIL, b"", due=-1.0), InvalidRequest),
            (NewItem(MAIL, b"", due=float("inf")), InvalidRequest),
            (NewItem(MAIL, b"", expires_at=float("nan")), InvalidRequest),
        ):
            with pytest.raises(error, match="mail"):
                await engine.queue.submit([NewItem(MAIL, b"good"), bad])
        assert await nothing(engine)
        assert sum((await engine.queue.counts()).values()) == 0

    async def test_a_dedupe_key_is_stored_once_per_function(self, engine: QueueEngine) -> None:
        first, again = await engine.queue.submit(
            [NewItem(MAIL, b"1", dedupe_key="k"), NewItem(MAIL, b"2", dedupe_key="k")]
        )
        other, later = await engine.queue.submit([NewItem(REPORT, b"3", dedupe_key="k")]) + await engine.queue.submit(
            [NewItem(URGENT, b"4", dedupe_key="k")]
        )
        assert (again.id, again.duplicate, later.id, later.duplicate) == (first.id, True, first.id, True)
        assert not first.duplicate and not other.duplicate
        assert sorted((await take(engine)).payloads) == [b"1", b"3"]

    async def test_a_dedupe_key_outlives_its_item_and_a_reopening(self, engine: QueueEngine) -> None:
        [first] = await put(engine, NewItem(MAIL, b"", dedupe_key="k"))
        leased = await take(engine)
        await engine.queue.settle(leased.fence, leased.ids, [])
        await engine.reopen()
        [again] = await engine.queue.submit([NewItem(MAIL, b"", dedupe_key="k")])
        assert again == (first, True)

    async def test_ids_are_unique_and_survive_a_reopening(self, engine: QueueEngine) -> None:
        ids = await put(engine, *(NewItem(MAIL, b"") for _ in range(300)))
        await engine.reopen()
        ids += await put(engine, *(NewItem(MAIL, b"") for _ in range(300)))
        assert len(set(ids)) == 600
        assert all(status is not None and status.state is State.NEW for status in await engine.queue.status(ids))


class LeasingLaws:
    """What is handed out, and in which order."""

    async def test_an_item_is_never_leased_before_it_is_due(self, engine: QueueEngine) -> None:
        await put(engine, NewItem(MAIL, b"", due=engine.now() + 60))
        assert await nothing(engine)
        await engine.pass_time(59)
        assert await nothing(engine)
        await engine.pass_time(2)
        assert len((await take(engine)).ids) == 1

    async def test_a_cell_is_leased_by_due_time(self, engine: QueueEngine) -> None:
        now = engine.now()
        await put(engine, *(NewItem(MAIL, str(due).encode(), due=now + due) for due in (30, 10, 20)))
        await engine.pass_time(60)
        taken = [(await take(engine, wanting(total=1))).payloads[0] for _ in range(3)]
        assert taken == [b"10", b"20", b"30"]

    async def test_higher_priorities_go_first(self, engine: QueueEngine) -> None:
        await put(engine, *(NewItem(LATER, b"low") for _ in range(50)))
        await put(engine, *(NewItem(URGENT, b"high") for _ in range(50)))
        leased = await take(engine, wanting(total=50))
        assert leased.payloads.count(b"high") >= 40

    async def test_a_flood_of_a_higher_priority_leaves_the_lower_a_share(self, engine: QueueEngine) -> None:
        await put(engine, *(NewItem(URGENT, b"high") for _ in range(1000)))
        await put(engine, NewItem(LATER, b"low"))
        seen = [payload for _ in range(50) for payload in (await take(engine, wanting(total=10))).payloads]
        assert b"low" in seen

    async def test_a_full_cell_does_not_starve_another(self, engine: QueueEngine) -> None:
        await put(engine, *(NewItem(MAIL, b"") for _ in range(1000)))
        await put(engine, NewItem(REPORT, b"found"))
        seen = [payload for _ in range(3) for payload in (await take(engine, wanting(total=100))).payloads]
        assert b"found" in seen

    async def test_a_demand_bounds_a_claim(self, engine: QueueEngine) -> None:
        await put(engine, *(NewItem(MAIL, b"x" * 1000) for _ in range(40)))
        await put(engine, *(NewItem(REPORT, b"x" * 1000) for _ in range(40)))
        assert set((await take(engine, wanting(REPORT, each=3))).kinds) == {REPORT}
        assert len((await take(engine, wanting(each=5))).ids) == 10
        assert len((await take(engine, wanting(total=4))).ids) == 4
        assert len((await take(engine, wanting(max_bytes=2500))).ids) == 2
        assert len((await take(engine, wanting(max_bytes=1))).ids) == 1
        assert await nothing(engine, wanting(total=0))
        assert await nothing(engine, wanting(Kind("unknown")))
        assert len((await take(engine)).ids) == 80 - 3 - 10 - 4 - 2 - 1

    async def test_a_claim_is_no_longer_than_a_flight(self, engine: QueueEngine) -> None:
        await put(engine, *(NewItem(MAIL, b"") for _ in range(FLIGHT_ITEMS + 1)))
        assert len((await take(engine, wanting(each=9999, total=9999))).ids) == FLIGHT_ITEMS

    async def test_what_is_leased_is_not_leased_again(self, engine: QueueEngine) -> None:
        await put(engine, NewItem(MAIL, b""))
        await take(engine)
        assert await nothing(engine)

    async def test_a_waiting_lease_ends_with_a_submission(self, engine: QueueEngine) -> None:
        waiting = asyncio.create_task(engine.queue.lease(wanting(), LEASE, 30))
        await put(engine, NewItem(MAIL, b"here"))
        leased = await asyncio.wait_for(waiting, 10)
        assert leased is not None
        assert leased.payloads == [b"here"]

    async def test_an_empty_queue_answers_after_the_wait(self, engine: QueueEngine) -> None:
        assert await engine.queue.lease(wanting(), LEASE, 0.02) is None

    async def test_what_expired_ends_without_being_handed_out(self, engine: QueueEngine) -> None:
        [gone, kept] = await put(
            engine, NewItem(MAIL, b"", expires_at=engine.now() + 5), NewItem(MAIL, b"", expires_at=engine.now() + 500)
        )
        await engine.pass_time(10)
        assert (await take(engine)).ids == [kept]
        assert await state(engine, gone) is State.EXPIRED

    @pytest.mark.parametrize(
        "gate",
        [
            Closed("mail"),
            Closed("mail", "welcome"),
            Closed("mail", "", "ann"),
            Closed("mail", "welcome", "ann"),
        ],
    )
    async def test_a_closed_cell_keeps_its_items_and_no_others(self, engine: QueueEngine, gate: Closed) -> None:
        kinds = [
            Kind(function, 2, collection, tenant)
            for function in ("mail", "report")
            for collection in ("", "welcome")
            for tenant in ("", "ann")
        ]
        await put(engine, *(NewItem(kind, b"") for kind in kinds))
        shut = {
            kind
            for kind in kinds
            if kind.function == gate.function
            and gate.collection in ("", kind.collection)
            and gate.tenant in ("", kind.tenant)
        }
        closed = await take(engine, wanting(closed=[gate]))
        assert set(closed.kinds) == set(kinds) - shut
        assert await nothing(engine, wanting(closed=[gate]))
        # And what comes due behind the closed ones is found, and they are found when the gate opens.
        due = engine.now() + 5
        await put(engine, *(NewItem(kind, b"", due=due) for kind in kinds))
        assert await nothing(engine, wanting(closed=[gate]))
        await engine.pass_time(6)
        assert set((await take(engine, wanting(closed=[gate]))).kinds) == set(kinds) - shut
        assert sorted((await take(engine)).kinds) == sorted([*shut, *shut])

    async def test_what_a_gate_drops_is_handed_out_to_be_dropped(self, engine: QueueEngine) -> None:
        await put(engine, NewItem(MAIL, b""))
        assert len((await take(engine, wanting(closed=[Closed("mail", drop=True)]))).ids) == 1


class LeaseLaws:
    """How a claim is kept, lost and ended."""

    async def test_fences_rise_through_reopenings_and_clocks_that_jump_back(self, engine: QueueEngine) -> None:
        await put(engine, NewItem(MAIL, b""))
        fences = []
        for jump in (0.0, 0.0, -3600.0, 0.0, -3600.0):
            leased = await take(engine)
            fences.append(leased.fence)
            await engine.queue.settle(leased.fence, [], [Settle(leased.ids[0], leased.fence, State.NEW)])
            await engine.reopen()
            await engine.pass_time(jump)
            await engine.pass_time(0.001)
            await put(engine, NewItem(MAIL, b""))
        assert fences == sorted(set(fences))

    async def test_an_ended_lease_is_leased_again_under_a_higher_fence(self, engine: QueueEngine) -> None:
        await put(engine, NewItem(MAIL, b""))
        first = await take(engine)
        await engine.pass_time(LEASE + 1)
        second = await take(engine)
        assert second.ids == first.ids
        assert second.fence > first.fence
        assert second.attempts == [1]

    async def test_a_lease_holds_through_a_reopening_and_ends_in_its_time(self, engine: QueueEngine) -> None:
        await put(engine, NewItem(MAIL, b""))
        leased = await take(engine)
        await engine.reopen()
        assert await nothing(engine)
        assert (await engine.queue.renew(leased.ids, leased.fence, LEASE, State.PROCESSING)).lost == []
        await engine.reopen()
        await engine.pass_time(LEASE + 1)
        assert (await take(engine)).ids == leased.ids

    async def test_a_renewed_lease_lasts_from_its_renewal(self, engine: QueueEngine) -> None:
        await put(engine, NewItem(MAIL, b""))
        leased = await take(engine)
        for phase in (State.CLAIMED, State.PROCESSING, State.PROCESSING):
            await engine.pass_time(LEASE * 0.7)
            renewed = await engine.queue.renew(leased.ids, leased.fence, LEASE, phase)
            assert (renewed.lost, renewed.cancel) == ([], [])
            assert await state(engine, leased.ids[0]) is phase
        assert await nothing(engine)
        assert await engine.queue.settle(leased.fence, leased.ids, []) == []

    async def test_an_item_left_out_of_a_renewal_ends_in_its_time(self, engine: QueueEngine) -> None:
        await put(engine, *(NewItem(MAIL, b"") for _ in range(3)))
        leased = await take(engine)
        await engine.pass_time(LEASE * 0.7)
        assert (await engine.queue.renew(leased.ids[:2], leased.fence, LEASE, State.PROCESSING)).lost == []
        await engine.pass_time(LEASE * 0.7)
        assert (await take(engine)).ids == leased.ids[2:]
        assert await engine.queue.settle(leased.fence, leased.ids, []) == leased.ids[2:]

    async def test_a_renewal_names_what_is_lost(self, engine: QueueEngine) -> None:
        await put(engine, NewItem(MAIL, b""), NewItem(MAIL, b""))
        first = await take(engine)
        await engine.queue.settle(first.fence, first.ids[:1], [])
        await engine.pass_time(LEASE + 1)
        second = await take(engine)
        assert second.ids == first.ids[1:]
        unknown = "0" * 16
        renewed = await engine.queue.renew([*first.ids, unknown], first.fence, LEASE, State.PROCESSING)
        assert renewed.lost == [*first.ids, unknown]
        assert (await engine.queue.renew(second.ids, second.fence, LEASE, State.PROCESSING)).lost == []

    async def test_a_lease_is_renewed_as_claimed_or_processing_only(self, engine: QueueEngine) -> None:
        await put(engine, NewItem(MAIL, b""))
        leased = await take(engine)
        for phase in set(State) - {State.CLAIMED, State.PROCESSING}:
            with pytest.raises(InvalidRequest, match=phase.label):
                await engine.queue.renew(leased.ids, leased.fence, LEASE, phase)


class SettlingLaws:
    """How items end."""

    async def test_what_succeeded_is_never_leased_again(self, engine: QueueEngine) -> None:
        await put(engine, NewItem(MAIL, b""))
        leased = await take(engine)
        assert await engine.queue.settle(leased.fence, leased.ids, []) == []
        await engine.reopen()
        await engine.pass_time(LEASE * 10)
        assert await nothing(engine)
        [status] = await engine.queue.status(leased.ids)
        assert status is not None
        assert (status.state, status.due) == (State.SUCCESS, 0.0)
        assert status.ended_at > 0

    async def test_repeating_a_settlement_is_harmless_and_costs_the_others_nothing(self, engine: QueueEngine) -> None:
        ids = await put(engine, *(NewItem(MAIL, b"") for _ in range(4)))
        leased = await take(engine)
        back = Settle(leased.ids[1], leased.fence, State.RETRIABLE_FAILURE, delay=10_000, attempts=1)
        for _ in range(5):
            assert await engine.queue.settle(leased.fence, leased.ids[:1], [back]) == []
        # The two that were not settled still belong to the claim, and come back when it ends.
        await engine.pass_time(LEASE + 1)
        assert sorted((await take(engine)).ids) == sorted(leased.ids[2:])
        assert len(ids) == 4

    async def test_an_older_fence_is_refused_and_changes_nothing(self, engine: QueueEngine) -> None:
        await put(engine, NewItem(MAIL, b""), NewItem(MAIL, b""))
        old = await take(engine)
        await engine.pass_time(LEASE + 1)
        new = await take(engine)
        fatal = Settle(old.ids[1], old.fence, State.FATAL_FAILURE, reason="late")
        assert sorted(await engine.queue.settle(old.fence, old.ids[:1], [fatal])) == sorted(old.ids)
        assert await state(engine, old.ids[0]) is State.ENQUEUED
        assert await engine.queue.settle(new.fence, new.ids, []) == []

    async def test_another_end_after_the_end_is_refused(self, engine: QueueEngine) -> None:
        await put(engine, NewItem(MAIL, b""))
        leased = await take(engine)
        await engine.queue.settle(leased.fence, leased.ids, [])
        for end in TERMINAL - {State.SUCCESS}:
            assert await engine.queue.settle(leased.fence, [], [Settle(leased.ids[0], leased.fence, end)]) == leased.ids
        assert await state(engine, leased.ids[0]) is State.SUCCESS

    async def test_unknown_ids_are_refused(self, engine: QueueEngine) -> None:
        for id in ("0" * 16, "f" * 16, "nonsense", ""):
            assert await engine.queue.settle(1, [id], []) == [id]
            assert await engine.queue.settle(1, [], [Settle(id, 1, State.NEW)]) == [id]
            assert await engine.queue.status([id]) == [None]

    @pytest.mark.parametrize("end", sorted(TERMINAL))
    async def test_each_end_is_final(self, engine: QueueEngine, end: State) -> None:
        await put(engine, NewItem(MAIL, b""))
        leased = await take(engine)
        settle = Settle(leased.ids[0], leased.fence, end, attempts=3, crashes=1, reason="because", progress="half")
        assert await engine.queue.settle(leased.fence, [], [settle]) == []
        await engine.pass_time(LEASE * 10)
        assert await nothing(engine)
        [status] = await engine.queue.status(leased.ids)
        assert status is not None
        assert (status.state, status.attempts, status.crashes) == (end, 3, 1)
        assert (status.reason, status.progress) == ("because", "half")

    @pytest.mark.parametrize("phase", sorted(LEASED))
    async def test_an_item_cannot_be_settled_into_a_leased_state(self, engine: QueueEngine, phase: State) -> None:
        await put(engine, NewItem(MAIL, b""))
        leased = await take(engine)
        assert await engine.queue.settle(leased.fence, [], [Settle(leased.ids[0], leased.fence, phase)]) == leased.ids
        assert await engine.queue.settle(leased.fence, leased.ids, []) == []

    async def test_a_returned_item_is_not_seen_early_and_its_past_carries_over(self, engine: QueueEngine) -> None:
        await put(engine, NewItem(MAIL, b"payload"))
        first = await take(engine)
        due = engine.now() + 100
        back = Settle(
            first.ids[0],
            first.fence,
            State.RETRIABLE_FAILURE,
            delay=100,
            attempts=1,
            crashes=1,
            reason="r",
            progress="p",
        )
        assert await engine.queue.settle(first.fence, [], [back]) == []
        await engine.reopen()
        [status] = await engine.queue.status(first.ids)
        assert status is not None
        assert (status.state, status.attempts, status.reason) == (State.RETRIABLE_FAILURE, 1, "r")
        assert status.due == pytest.approx(due, abs=0.01)
        await engine.pass_time(99)
        assert await nothing(engine)
        await engine.pass_time(2)
        again = await take(engine)
        assert (again.ids, again.payloads, again.attempts) == (first.ids, [b"payload"], [2])
        assert (again.extras[0].crashes, again.extras[0].alone, again.extras[0].progress) == (1, True, "p")

    async def test_how_its_attempts_went_is_kept_the_last_ones(self, engine: QueueEngine) -> None:
        one, other = await put(engine, NewItem(MAIL, b""), NewItem(MAIL, b""))
        for number in range(KEPT + 2):
            leased = await take(engine)
            why = f'no. {number} said "é"' if number else "x" * 1000
            back = (State.RETRIABLE_FAILURE, 0.0, number, 0, why, "", 0, "retry")
            handed = Settle(other, leased.fence, State.NEW)  # nothing happened to this one
            await engine.queue.settle(leased.fence, [], [Settle(one, leased.fence, *back), handed])
            if not number:
                await engine.reopen()
                [first] = (await engine.queue.tries([one]))[one]
                assert (first.outcome, len(first.reason)) == ("retry", REASON_KEPT)
        tries = await engine.queue.tries([one, other, "00000000000000ff"])
        assert list(tries) == [one]
        assert [each.reason for each in tries[one]] == [f'no. {n} said "é"' for n in range(2, KEPT + 2)]
        assert [each.at for each in tries[one]] == sorted(each.at for each in tries[one])

    async def test_an_item_handed_back_costs_nothing_and_may_run_at_once(self, engine: QueueEngine) -> None:
        await put(engine, NewItem(MAIL, b""))
        first = await take(engine)
        await engine.queue.settle(first.fence, [], [Settle(first.ids[0], first.fence, State.NEW)])
        again = await take(engine)
        assert (again.ids, again.attempts) == (first.ids, [1])
        assert again.fence > first.fence


class CancellingLaws:
    """How a user ends what was submitted."""

    async def test_an_item_handed_back_at_once_goes_before_all_that_waits(self, engine: QueueEngine) -> None:
        [first] = await put(engine, NewItem(MAIL, b"lost"))
        leased = await take(engine)
        await engine.pass_time(1)
        for number in range(3):
            await put(engine, NewItem(MAIL, f"{number}".encode()))
        await engine.pass_time(1)
        await engine.queue.settle(leased.fence, [], [Settle(first, leased.fence, State.NEW)])
        assert (await take(engine)).payloads[0] == b"lost"

    async def test_an_item_whose_holder_died_goes_before_all_that_came_later(self, engine: QueueEngine) -> None:
        await put(engine, NewItem(MAIL, b"lost"))
        await take(engine)
        await put(engine, NewItem(MAIL, b"waits"))
        await engine.pass_time(LEASE + 1)
        assert (await take(engine)).payloads == [b"lost", b"waits"]

    async def test_an_item_that_waits_is_cancelled_at_once(self, engine: QueueEngine) -> None:
        [id] = await put(engine, NewItem(MAIL, b""))
        assert await engine.queue.cancel([id, "0" * 16]) == ["cancelled", "unknown"]
        assert await nothing(engine)
        assert await state(engine, id) is State.CANCELLED
        assert await engine.queue.cancel([id]) == ["ended"]

    async def test_the_holder_of_a_leased_item_is_told_at_its_renewal(self, engine: QueueEngine) -> None:
        await put(engine, NewItem(MAIL, b""), NewItem(MAIL, b""))
        leased = await take(engine)
        assert await engine.queue.cancel(leased.ids[:1]) == ["requested"]
        renewed = await engine.queue.renew(leased.ids, leased.fence, LEASE, State.PROCESSING)
        assert (renewed.lost, renewed.cancel) == ([], leased.ids[:1])

    @pytest.mark.parametrize("back", [State.NEW, State.RETRIABLE_FAILURE])
    async def test_a_cancelled_item_that_is_returned_ends(self, engine: QueueEngine, back: State) -> None:
        await put(engine, NewItem(MAIL, b""))
        leased = await take(engine)
        await engine.queue.cancel(leased.ids)
        settle = Settle(leased.ids[0], leased.fence, back)
        assert await engine.queue.settle(leased.fence, [], [settle]) == []
        assert await engine.queue.settle(leased.fence, [], [settle]) == []
        assert await state(engine, leased.ids[0]) is State.CANCELLED
        assert await nothing(engine)

    async def test_a_cancelled_item_whose_holder_died_is_not_handed_out_again(self, engine: QueueEngine) -> None:
        await put(engine, NewItem(MAIL, b""))
        leased = await take(engine)
        await engine.queue.cancel(leased.ids)
        await engine.pass_time(LEASE + 1)
        assert await nothing(engine)
        assert await state(engine, leased.ids[0]) is State.CANCELLED

    async def test_a_cancelled_item_may_still_succeed(self, engine: QueueEngine) -> None:
        await put(engine, NewItem(MAIL, b""))
        leased = await take(engine)
        await engine.queue.cancel(leased.ids)
        assert await engine.queue.settle(leased.fence, leased.ids, []) == []
        assert await state(engine, leased.ids[0]) is State.SUCCESS


class KeyLaws:
    """At most one item of a key runs at a time, in order of submission (R90)."""

    async def test_a_key_is_leased_one_at_a_time_in_order(self, engine: QueueEngine) -> None:
        await put(engine, *(NewItem(MAIL, str(i).encode(), key="ann") for i in range(3)))
        await put(engine, NewItem(MAIL, b"other", key="bob"), NewItem(MAIL, b"none"))
        first = await take(engine)
        assert sorted(first.payloads) == [b"0", b"none", b"other"]
        assert await nothing(engine)
        await engine.queue.settle(first.fence, first.ids, [])
        second = await take(engine)
        assert second.payloads == [b"1"]
        await engine.reopen()
        assert await nothing(engine)
        await engine.queue.settle(second.fence, [], [Settle(second.ids[0], second.fence, State.FATAL_FAILURE)])
        assert (await take(engine)).payloads == [b"2"]

    async def test_a_key_waits_for_its_failed_item(self, engine: QueueEngine) -> None:
        await put(engine, NewItem(MAIL, b"0", key="ann"), NewItem(MAIL, b"1", key="ann"))
        first = await take(engine)
        back = Settle(first.ids[0], first.fence, State.RETRIABLE_FAILURE, delay=50, attempts=1)
        await engine.queue.settle(first.fence, [], [back])
        assert await nothing(engine)
        await engine.pass_time(51)
        assert (await take(engine)).payloads == [b"0"]
        assert await nothing(engine)

    async def test_a_cancelled_item_lets_its_key_go_on(self, engine: QueueEngine) -> None:
        ids = await put(engine, *(NewItem(MAIL, str(i).encode(), key="ann") for i in range(3)))
        assert await engine.queue.cancel(ids[1:2]) == ["cancelled"]
        first = await take(engine)
        assert first.payloads == [b"0"]
        await engine.queue.settle(first.fence, first.ids, [])
        assert (await take(engine)).payloads == [b"2"]

    async def test_the_next_of_a_key_still_waits_for_its_own_time(self, engine: QueueEngine) -> None:
        await put(engine, NewItem(MAIL, b"0", key="ann"), NewItem(MAIL, b"1", key="ann", due=engine.now() + 50))
        first = await take(engine)
        await engine.queue.settle(first.fence, first.ids, [])
        assert await nothing(engine)
        await engine.pass_time(51)
        assert (await take(engine)).payloads == [b"1"]


class TellingLaws:
    """What a queue says of itself."""

    async def test_counts_are_by_state_and_survive_a_reopening(self, engine: QueueEngine) -> None:
        ids = await put(engine, *(NewItem(MAIL, b"") for _ in range(6)))
        leased = await take(engine, wanting(total=3))
        await engine.queue.settle(
            leased.fence,
            leased.ids[:1],
            [Settle(leased.ids[1], leased.fence, State.RETRIABLE_FAILURE, delay=9, attempts=1)],
        )
        waiting = [id for id in ids if id not in leased.ids]
        await engine.queue.cancel(waiting[:1])
        expected = {"new": 2, "enqueued": 1, "success": 1, "retriable_failure": 1, "cancelled": 1}
        for _ in range(2):
            counts = await engine.queue.counts()
            assert set(counts) == {state.label for state in State}
            assert {label: count for label, count in counts.items() if count} == expected
            await engine.reopen()

    async def test_what_is_due_is_counted_by_function_up_to_a_bound(self, engine: QueueEngine) -> None:
        # Given items that are due, others that are not, and some that wait for an older one of their key
        later, keyed = engine.now() + 100, Kind("keyed")
        await put(engine, *(NewItem(MAIL, b"") for _ in range(5)), NewItem(MAIL, b"", due=later))
        await put(engine, *(NewItem(Kind("other", level), b"") for level in (0, 1)))
        await put(engine, NewItem(Kind("late"), b"", due=later), *(NewItem(keyed, b"", key="k") for _ in range(3)))
        assert await engine.queue.due(100) == {"mail": 5, "other": 2, "keyed": 1}
        assert (await engine.queue.due(3))["mail"] == 3
        # When some are leased, then they are not counted; what becomes free is
        leased = await take(engine, wanting(MAIL, keyed))
        assert await engine.queue.due(100) == {"other": 2}
        await engine.queue.settle(leased.fence, leased.ids, [])
        assert await engine.queue.due(100) == {"other": 2, "keyed": 1}

    async def test_the_oldest_due_and_the_highest_attempt_of_each_priority_are_told(self, engine: QueueEngine) -> None:
        # Given nothing that is due, nothing is told
        keyed, other = Kind("keyed"), Kind("mail", 2, "welcome", "ann")
        await put(engine, NewItem(LATER, b"", due=engine.now() + 1000))
        assert await ages(engine) == {}
        # When items of two collections have waited, then the older one counts; behind a key nobody waits
        await put(engine, NewItem(other, b""), *(NewItem(keyed, b"", key="k") for _ in range(2)))
        await engine.pass_time(40)
        await put(engine, NewItem(MAIL, b""), NewItem(URGENT, b""))
        await engine.pass_time(2)
        assert await ages(engine) == {("mail", 2): (42, 0), ("mail", 0): (2, 0), ("keyed", 2): (42, 0)}
        # When some are claimed and fail, then what they spent is told, while they wait and while they run
        leased = await take(engine, wanting(MAIL))
        spent = [3 if kind == other else 1 for kind in leased.kinds]
        back = [
            Settle(id, leased.fence, State.RETRIABLE_FAILURE, delay=50, attempts=n)
            for id, n in zip(leased.ids, spent, strict=True)
        ]
        await engine.queue.settle(leased.fence, [], back)
        assert (await ages(engine))["mail", 2] == (0, 3)
        await engine.pass_time(60)
        assert (await ages(engine))["mail", 2] == (10, 3)
        leased = await take(engine, wanting(MAIL))
        assert (await ages(engine))["mail", 2] == (0, 3)
        await engine.reopen()
        assert (await ages(engine))["mail", 2] == (0, 3)
        # When the one that failed most is over, however it ends, then the next one's count is told, and none in the end
        three = leased.ids[leased.kinds.index(other)]
        await engine.queue.settle(leased.fence, [three], [])
        assert (await ages(engine))["mail", 2] == (0, 1)
        [one] = [id for id in leased.ids if id != three]
        await engine.queue.settle(leased.fence, [], [Settle(one, leased.fence, State.FATAL_FAILURE, attempts=2)])
        assert ("mail", 2) not in await ages(engine)

    async def test_what_is_cancelled_had_no_attempts(self, engine: QueueEngine) -> None:
        # Given two that failed, one waiting and one out
        [first, second] = await put(engine, NewItem(MAIL, b""), NewItem(URGENT, b""))
        leased = await take(engine)
        back = [Settle(id, leased.fence, State.RETRIABLE_FAILURE, delay=5, attempts=4) for id in (first, second)]
        await engine.queue.settle(leased.fence, [], back)
        await engine.pass_time(6)
        leased = await take(engine, wanting(URGENT), seconds=5)
        assert {attempts for _, attempts in (await ages(engine)).values()} == {4}
        # When both are cancelled, the one that is out by the end of its lease, then nothing is told of them
        assert await engine.queue.cancel([first, second]) == ["cancelled", "requested"]
        await engine.pass_time(6)
        assert await nothing(engine)
        assert await ages(engine) == {}

    async def test_a_status_says_when_and_what(self, engine: QueueEngine) -> None:
        due = engine.now() + 100
        kind = Kind("mail", 1, "welcome", "ann")
        [id] = await put(engine, NewItem(kind, b"", due=due))
        [status, unknown] = await engine.queue.status([id, "f" * 16])
        assert unknown is None
        assert status is not None
        assert (status.id, status.state, status.kind) == (id, State.NEW, kind)
        assert (status.attempts, status.crashes, status.ended_at, status.reason) == (0, 0, 0.0, "")
        assert status.due == pytest.approx(due, abs=0.01)
        assert status.created_at == pytest.approx(due - 100, abs=1.0)


class QueueLaws(SubmittingLaws, LeasingLaws, LeaseLaws, SettlingLaws, CancellingLaws, KeyLaws, TellingLaws):
    """All of them."""
