"""Laws of calls about one item: rescheduling an item that waits, and a look at its payload."""

from __future__ import annotations

import asyncio
import math

import pytest

from ...model.claim import Settle, State
from ...model.errors import InvalidRequest
from ...model.one_item import BEHIND, CHANGED, ENDED, EXPIRES, OUT, UNKNOWN
from ...stores.queue.items import NOW
from ...stores.queue.queue import ItemContent, NewItem, Reschedule
from .queue_engine import LATER, LEASE, MAIL, URGENT, QueueEngine, ages, nothing, put, state, take, wanting

NOBODY = ("0" * 16, "f" * 16, "nonsense", "", "nul\0", "x" * 100_000)


async def due_of(engine: QueueEngine, id: str) -> float:
    [status] = await engine.queue.status([id])
    assert status is not None
    return status.due


async def change(engine: QueueEngine, id: str, due: float | None = None, priority: int | None = None) -> str:
    [answer] = await engine.queue.reschedule([Reschedule(id, due, priority)])
    return answer


class RescheduleLaws:
    """The laws of rescheduling: another moment or priority for an item that waits."""

    async def test_what_waits_is_due_when_it_is_told_to(self, engine: QueueEngine) -> None:
        # Given one that is due, and one that is due later
        [now, later] = await put(engine, NewItem(MAIL, b"now"), NewItem(MAIL, b"later", due=engine.now() + 500))
        # When they change places
        moment = engine.now() + 100
        assert await change(engine, now, moment) == CHANGED
        assert await change(engine, later, NOW) == CHANGED
        # Then a claim sees it, at once and after a reopening
        assert await due_of(engine, now) == pytest.approx(moment, abs=0.01)
        assert (await take(engine)).payloads == [b"later"]
        assert await nothing(engine)
        await engine.reopen()
        assert await nothing(engine)
        await engine.pass_time(101)
        assert b"now" in (await take(engine)).payloads

    async def test_now_delays_nothing_that_is_due(self, engine: QueueEngine) -> None:
        [old] = await put(engine, NewItem(MAIL, b"old"))
        await engine.pass_time(5)
        await put(engine, NewItem(MAIL, b"new"))
        before = await due_of(engine, old)
        assert await change(engine, old, NOW) == CHANGED
        assert await due_of(engine, old) == before
        assert (await take(engine, wanting(total=1))).payloads == [b"old"]

    async def test_a_claim_that_waits_sees_what_is_due_by_a_change(self, engine: QueueEngine) -> None:
        [id] = await put(engine, NewItem(MAIL, b"", due=engine.now() + 500))
        assert await nothing(engine)
        waits = asyncio.create_task(engine.queue.lease(wanting(), LEASE, 20))
        await asyncio.sleep(0)
        assert await change(engine, id, NOW) == CHANGED
        leased = await waits
        assert leased is not None and leased.ids == [id]

    async def test_what_was_submitted_just_now_and_is_put_off_is_not_claimed(self, engine: QueueEngine) -> None:
        [first, second] = await put(engine, NewItem(MAIL, b"first"), NewItem(MAIL, b"second"))
        assert await change(engine, first, engine.now() + 50) == CHANGED
        assert (await take(engine)).ids == [second]

    async def test_a_priority_changes_where_it_is_claimed_and_nothing_else(self, engine: QueueEngine) -> None:
        # Given one that failed twice and is due
        [id] = await put(engine, NewItem(LATER._replace(tenant="ann", collection="c"), b"p", headers=(("h", "v"),)))
        leased = await take(engine)
        back = Settle(id, leased.fence, State.RETRIABLE_FAILURE, delay=1, attempts=2, reason="why", outcome="retry")
        await engine.queue.settle(leased.fence, [], [back])
        await engine.pass_time(2)
        # When its priority is raised
        due = await due_of(engine, id)
        assert await change(engine, id, priority=URGENT.priority) == CHANGED
        # Then it waits there, with its past, and no more where it was
        [status] = await engine.queue.status([id])
        assert status is not None
        assert (status.kind, status.attempts, status.due) == (URGENT._replace(tenant="ann", collection="c"), 2, due)
        assert await ages(engine) == {("mail", 0): (round(engine.now() - due), 2)}
        assert await nothing(engine, wanting(LATER))
        again = await take(engine, wanting(URGENT))
        assert (again.ids, again.attempts, again.payloads) == ([id], [3], [b"p"])
        await engine.queue.settle(again.fence, [id], [])
        assert await ages(engine) == {}
        assert await engine.queue.due(10) == {}

    async def test_a_change_of_both_is_one(self, engine: QueueEngine) -> None:
        [id] = await put(engine, NewItem(LATER, b"", due=engine.now() + 50))
        assert await change(engine, id, NOW, URGENT.priority) == CHANGED
        assert (await take(engine, wanting(URGENT))).ids == [id]

    async def test_what_does_not_wait_is_not_changed(self, engine: QueueEngine) -> None:
        # Given one that is out, one that has ended, one that may not start after a while, and some that nobody knows
        expires = engine.now() + 60
        out, done, short = await put(
            engine, NewItem(MAIL, b""), NewItem(MAIL, b""), NewItem(MAIL, b"", engine.now() + 9, expires_at=expires)
        )
        leased = await take(engine)
        await engine.queue.settle(leased.fence, [done], [])
        # When all are to be changed in one call, with one that can be
        [waits] = await put(engine, NewItem(MAIL, b"waits"))
        wanted = engine.now() + 70
        ids = (out, done, short, *NOBODY, waits)
        answers = await engine.queue.reschedule([Reschedule(id, wanted, URGENT.priority) for id in ids])
        # Then each is told by its word, and only that one was
        assert answers == [OUT, ENDED, EXPIRES, *(UNKNOWN for _ in NOBODY), CHANGED]
        [first, second, third, fourth] = await engine.queue.status([out, done, short, waits])
        assert first is not None and second is not None and third is not None and fourth is not None
        assert [each.kind.priority for each in (first, second, third, fourth)] == [2, 2, 2, 0]
        assert (await engine.queue.renew([out], leased.fence, LEASE, State.PROCESSING)).lost == []
        # And the one that may start no later can still be moved to where it may
        assert await change(engine, short, engine.now() + 50) == CHANGED
        assert await engine.queue.settle(leased.fence, [out], []) == []

    @pytest.mark.parametrize("due", [-1.0, math.nan, math.inf, 1e30])
    async def test_a_moment_that_is_none_is_refused_before_anything_is_changed(
        self, engine: QueueEngine, due: float
    ) -> None:
        [id] = await put(engine, NewItem(MAIL, b""))
        before = await due_of(engine, id)
        for bad in (Reschedule(id, due), Reschedule(id, None, -1), Reschedule(id, None, 1 << 31)):
            with pytest.raises(InvalidRequest):
                await engine.queue.reschedule([Reschedule(id, engine.now() + 50), bad])
        assert await due_of(engine, id) == before
        assert await engine.queue.reschedule([]) == []

    async def test_a_key_keeps_its_order_whatever_is_changed(self, engine: QueueEngine) -> None:
        # Given three of a key, of which the first is out
        ids = await put(engine, *(NewItem(MAIL, str(n).encode(), key="k") for n in range(3)))
        first = await take(engine)
        # When the last one is made urgent and the second one late, Then both go on waiting for their turn
        moment = engine.now() + 30
        assert await change(engine, ids[2], NOW, URGENT.priority) == BEHIND
        assert await change(engine, ids[1], moment) == BEHIND
        assert await due_of(engine, ids[1]) == pytest.approx(moment, abs=0.01)
        assert await nothing(engine)
        await engine.queue.settle(first.fence, first.ids, [])
        await engine.reopen()
        assert await nothing(engine)
        await engine.pass_time(31)
        second = await take(engine)
        assert second.ids == [ids[1]]
        assert await nothing(engine)
        await engine.queue.settle(second.fence, second.ids, [])
        assert (await take(engine, wanting(URGENT))).ids == [ids[2]]

    async def test_the_first_of_a_key_that_is_put_off_holds_the_others_back(self, engine: QueueEngine) -> None:
        ids = await put(engine, *(NewItem(MAIL, b"", key="k") for _ in range(2)))
        assert await change(engine, ids[0], engine.now() + 30) == CHANGED
        assert await nothing(engine)
        await engine.pass_time(31)
        assert (await take(engine)).ids == ids[:1]

    async def test_a_change_and_a_claim_of_one_moment_are_one_after_the_other(self, engine: QueueEngine) -> None:
        # Given many that are due
        ids = await put(engine, *(NewItem(MAIL, b"") for _ in range(40)))
        later = engine.now() + 500
        # When half of them are put off while claims take what is due
        changes = [engine.queue.reschedule([Reschedule(id, later)]) for id in ids[::2]]
        claims = [engine.queue.lease(wanting(total=7), LEASE, 0) for _ in range(8)]
        both = [each for pair in zip(changes, [*claims, *([None] * 12)], strict=True) for each in pair if each]
        answers = await asyncio.gather(*both)
        told = dict(zip(ids[::2], [each[0] for each in answers if isinstance(each, list)], strict=True))
        taken = {id for each in answers if each is not None and not isinstance(each, list) for id in each.ids}
        # Then what was changed is not out, and what is out was not changed
        assert {id for id, answer in told.items() if answer == OUT} == taken & {*told}
        for id, answer in told.items():
            assert await state(engine, id) is (State.NEW if answer == CHANGED else State.ENQUEUED)

    async def test_the_end_of_a_keys_first_and_a_change_of_its_next_are_one_after_the_other(
        self, engine: QueueEngine
    ) -> None:
        # Given pairs of a key, of which the first are out
        pairs = [await put(engine, *(NewItem(MAIL, b"", key=f"k{n}") for _ in range(2))) for n in range(20)]
        leased = await take(engine)
        later = engine.now() + 500
        # When all of those end while the second ones are put off
        ends = [engine.queue.settle(leased.fence, [first], []) for first, _ in pairs]
        changes = [engine.queue.reschedule([Reschedule(second, later)]) for _, second in pairs]
        await asyncio.gather(*(each for pair in zip(ends, changes, strict=True) for each in pair))
        # Then none of these runs before its time, and all do then
        assert await nothing(engine)
        assert {round(await due_of(engine, second) - later) for _, second in pairs} == {0}
        await engine.pass_time(501)
        assert sorted((await take(engine)).ids) == sorted(second for _, second in pairs)

    async def test_a_change_is_seen_where_tenants_take_turns(self, engine: QueueEngine) -> None:
        # Given a flood of one tenant, beside two others with something later, and turns that were taken
        flood = MAIL._replace(tenant="flood")
        ids = await put(engine, *(NewItem(flood, b"flood") for _ in range(600)))
        [first, second] = await put(
            engine,
            *(NewItem(MAIL._replace(tenant=name), name.encode(), engine.now() + 500) for name in ("ann", "bob")),
        )
        await put(engine, NewItem(MAIL._replace(tenant="cid"), b"cid"))
        out = [*(await take(engine, wanting(total=16))).ids, *(await take(engine, wanting(total=16))).ids]
        # When one of the others is due now and the second one urgent, and half of the flood is put off
        assert await change(engine, first, NOW) == CHANGED
        assert await change(engine, second, NOW, URGENT.priority) == CHANGED
        off = [id for id in ids if id not in out][:300]
        assert {*await engine.queue.reschedule([Reschedule(id, engine.now() + 500) for id in off])} == {CHANGED}
        # Then the next claims have them, and nothing of what was put off
        assert (await take(engine, wanting(URGENT))).ids == [second]
        seen = (await take(engine, wanting(total=16))).ids
        assert first in seen
        while (leased := await engine.queue.lease(wanting(), LEASE, 0)) is not None:
            seen += leased.ids
        assert not {*seen} & {*off}
        assert {*seen, *out} >= {*ids} - {*off}
        await engine.pass_time(501)
        again: list[str] = []
        while (leased := await engine.queue.lease(wanting(), LEASE, 0)) is not None:
            again += leased.ids
        assert {*off} <= {*again}

    async def test_counts_say_the_same_after_a_change(self, engine: QueueEngine) -> None:
        [id, other] = await put(engine, NewItem(MAIL, b""), NewItem(MAIL, b""))
        for due, priority in ((NOW, 0), (engine.now() + 9, 3), (None, 1), (NOW, 2)):
            assert await change(engine, id, due, priority) == CHANGED
        assert (await engine.queue.counts())["new"] == 2
        tally = await engine.queue.tally()
        assert tally.states == await engine.queue.counts()
        assert {*(await take(engine)).ids} == {id, other}
        assert await nothing(engine)


class PeekLaws:
    """The laws of a look at the payload of an item."""

    async def test_a_live_item_shows_the_beginning_of_its_payload_and_what_goes_with_it(
        self, engine: QueueEngine
    ) -> None:
        payload, headers = b"\x00\xff\x1b[2J" + bytes(range(256)) * 300, (("created-by", "ann"), ("é", '"\\\n'))
        expires = engine.now() + 500
        [id] = await put(engine, NewItem(MAIL, payload, key="kä", headers=headers, expires_at=expires))
        assert await engine.queue.peek(id, 1000) == ItemContent(payload[:1000], len(payload), "kä", headers, expires)
        assert await engine.queue.peek(id, 0) == ItemContent(b"", len(payload), "kä", headers, expires)
        leased = await take(engine)
        out = await engine.queue.peek(id, 1 << 20)
        assert out is not None and out.payload == payload
        await engine.queue.settle(leased.fence, [id], [])
        assert await engine.queue.peek(id, 1000) is None

    async def test_one_that_says_nothing_holds_its_payload_alone(self, engine: QueueEngine) -> None:
        [id] = await put(engine, NewItem(MAIL, b""))
        assert await engine.queue.peek(id, 10) == ItemContent(b"", 0)
        await engine.queue.cancel([id])
        assert await engine.queue.peek(id, 10) is None

    async def test_one_behind_another_of_its_key_names_that(self, engine: QueueEngine) -> None:
        # Given three of one key, one of a key that begins as it does, and one without
        keys = ("k", "k", "k", "kk", "")
        first, second, third, *others = await put(engine, *(NewItem(MAIL, b"", key=key) for key in keys))

        async def behind(*ids: str) -> list[str]:
            found = [await engine.queue.peek(id, 0) for id in ids]
            return [each.behind for each in found if each is not None]

        assert await behind(first, second, third, *others) == ["", first, first, "", ""]
        # When the first of them runs and ends, then the others are behind the next one
        leased = await take(engine)
        assert await behind(first, second) == ["", first]
        await engine.queue.settle(leased.fence, leased.ids, [])
        assert await behind(second, third) == ["", second]

    async def test_a_look_changes_nothing(self, engine: QueueEngine) -> None:
        [id] = await put(engine, NewItem(MAIL, b"x"))
        before = await engine.queue.status([id]), await engine.queue.counts()
        await engine.queue.peek(id, 10)
        assert (await engine.queue.status([id]), await engine.queue.counts()) == before
        assert (await take(engine)).ids == [id]

    async def test_what_is_not_known_holds_nothing(self, engine: QueueEngine) -> None:
        for id in NOBODY:
            assert await engine.queue.peek(id, 10) is None
