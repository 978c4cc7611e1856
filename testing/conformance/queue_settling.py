"""Laws of settlements, which end items or bring them back, and of the figures that a queue tells."""

from __future__ import annotations

import asyncio

import pytest

from ...model.claim import Settle, State
from ...model.tries import KEPT, REASON_KEPT
from ...model.workload import Kind
from ...stores.queue.lifecycle import LEASED, TERMINAL
from ...stores.queue.queue import NewItem
from .queue_engine import (
    LATER,
    LEASE,
    MAIL,
    URGENT,
    QueueEngine,
    ages,
    nothing,
    put,
    state,
    take,
    wanting,
)


class SettlingLaws:
    """The laws of how items end."""

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

    async def test_claims_settled_at_once_are_each_judged_by_their_own_fence(self, engine: QueueEngine) -> None:
        claims = []
        for key in ("a", "", "b", ""):
            await put(engine, NewItem(MAIL, b"", key=key))
            claims.append(await take(engine))
        await put(engine, NewItem(MAIL, b"", key="a"))
        (first, second, third, fourth), unknown = claims, "0" * 16
        # When they are settled in one moment, one of them by another one's fence, and one twice
        settled = await asyncio.gather(
            engine.queue.settle(first.fence, first.ids, []),
            engine.queue.settle(first.fence, second.ids, []),
            engine.queue.settle(third.fence, [*third.ids, unknown], []),
            engine.queue.settle(third.fence, third.ids, []),
        )
        # Then it alone is refused, beside what nobody knows, and the next of a key may run
        assert [*settled] == [[], second.ids, [unknown], []]
        states = [await state(engine, claim.ids[0]) for claim in claims]
        assert states == [State.SUCCESS, State.ENQUEUED, State.SUCCESS, State.ENQUEUED]
        assert len((await take(engine)).ids) == 1
        # And those that are out still end with their leases
        await engine.pass_time(LEASE + 1)
        assert {*second.ids, *fourth.ids} <= {*(await take(engine)).ids}

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

    async def test_the_headers_of_live_items_are_told(self, engine: QueueEngine) -> None:
        told = (("created-by", "ann@host"), ("é", '"\\\n'))
        one, other, done = await put(
            engine, NewItem(MAIL, b"", headers=told), NewItem(MAIL, b""), NewItem(MAIL, b"", headers=told)
        )
        leased = await take(engine)
        await engine.queue.settle(leased.fence, [done], [])
        assert await engine.queue.headers([one, other, done, "00000000000000ff", "none"]) == {one: told}
        assert await engine.queue.headers([]) == {}

    async def test_when_an_item_was_due_is_told(self, engine: QueueEngine) -> None:
        [one] = await put(engine, NewItem(MAIL, b"", due=engine.now() + 10))
        await engine.pass_time(15)
        leased = await take(engine)
        assert leased.ids == [one]
        assert [*leased.dues] == [pytest.approx(engine.now() - 5, abs=1.0)]

    async def test_when_an_item_that_failed_was_due_again_is_told(self, engine: QueueEngine) -> None:
        [one] = await put(engine, NewItem(MAIL, b""))
        first = await take(engine)
        await engine.queue.settle(first.fence, [], [Settle(one, first.fence, State.RETRIABLE_FAILURE, 10.0, 1)])
        await engine.pass_time(15)
        assert [*(await take(engine)).dues] == [pytest.approx(engine.now() - 5, abs=1.0)]

    async def test_of_many_and_of_those_that_did_not_expire_few_say_when_they_were_due(
        self, engine: QueueEngine
    ) -> None:
        now = engine.now()
        items = [
            NewItem(MAIL, b"", due=now + number / 10, expires_at=now + 7 if number % 3 else 0.0) for number in range(90)
        ]
        await put(engine, *items)
        await engine.pass_time(12)
        leased = await take(engine)
        assert len(leased.ids) == 30
        assert [*leased.dues] == [pytest.approx(now + 3 * number / 10, abs=1.0) for number in range(0, 30, 2)]

    async def test_an_item_handed_back_costs_nothing_and_may_run_at_once(self, engine: QueueEngine) -> None:
        await put(engine, NewItem(MAIL, b""))
        first = await take(engine)
        await engine.queue.settle(first.fence, [], [Settle(first.ids[0], first.fence, State.NEW)])
        again = await take(engine)
        assert (again.ids, again.attempts) == (first.ids, [1])
        assert again.fence > first.fence

    async def test_an_item_handed_back_at_once_goes_before_all_that_waits(self, engine: QueueEngine) -> None:
        [first] = await put(engine, NewItem(MAIL, b"lost"))
        leased = await take(engine)
        await engine.pass_time(1)
        for number in range(3):
            await put(engine, NewItem(MAIL, f"{number}".encode()))
        await engine.pass_time(1)
        await engine.queue.settle(leased.fence, [], [Settle(first, leased.fence, State.NEW)])
        assert (await take(engine)).payloads[0] == b"lost"


class TellingLaws:
    """The laws of a queue's figures about itself."""

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
