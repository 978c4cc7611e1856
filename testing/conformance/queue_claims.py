"""Laws of submissions to a queue, and of claims: which items are handed out next, by time, priority and key."""

from __future__ import annotations

import asyncio

import pytest

from ...model.claim import Settle, State
from ...model.demand import Closed
from ...model.errors import InvalidPayload, InvalidRequest
from ...model.workload import FLIGHT_ITEMS, Kind
from ...stores.queue.admission import SUBMISSION_PREFIX
from ...stores.queue.queue import NewItem, Submitted
from .calls import calls_of
from .queue_engine import (
    LATER,
    LEASE,
    MAIL,
    MAX_PAYLOAD,
    REPORT,
    URGENT,
    QueueEngine,
    ages,
    nothing,
    put,
    state,
    take,
    wanting,
)


class SubmittingLaws:
    """The promises of a submission."""

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

    @pytest.mark.parametrize("field", ["key", "dedupe_key"])
    async def test_a_key_with_a_nul_is_refused_and_nothing_of_its_call_is_stored(
        self, engine: QueueEngine, field: str
    ) -> None:
        bad = NewItem(MAIL, b"2", **{field: "k\0l"})  # type: ignore[arg-type]
        with pytest.raises(InvalidRequest, match=f"its {field} has a NUL"):
            await engine.queue.submit([NewItem(MAIL, b"1"), bad])
        assert await nothing(engine)

    async def test_headers_come_back_as_they_were_given(self, engine: QueueEngine) -> None:
        headers = (("", ""), ("a\0b", "\0"), ("a\0b", "zweimal ✓"), ('"', "\\u0000 \r\n"), ("\u2028", "\U0001f600"))
        await put(engine, NewItem(MAIL, b"", headers=headers))
        leased = await take(engine)
        assert leased.extras[0].headers == headers

    async def test_a_dedupe_key_outlives_its_item_and_a_reopening(self, engine: QueueEngine) -> None:
        [first] = await put(engine, NewItem(MAIL, b"", dedupe_key="k"))
        leased = await take(engine)
        await engine.queue.settle(leased.fence, leased.ids, [])
        await engine.reopen()
        [again] = await engine.queue.submit([NewItem(MAIL, b"", dedupe_key="k")])
        assert again == (first, True)

    async def test_a_call_is_known_again_in_whatever_parts_it_comes(self, engine: QueueEngine) -> None:
        call = [NewItem(MAIL, b"", dedupe_key=f"{SUBMISSION_PREFIX}{'ab' * 13}{number:06x}") for number in range(250)]
        stored = await engine.queue.submit(call[:200])
        again = [Submitted(each.id, True) for each in stored]
        assert await engine.queue.submit(call[:200]) == again
        await engine.reopen()
        assert await engine.queue.submit(call[100:200]) == again[100:]
        assert await engine.queue.submit([call[199], call[3]]) == [again[199], again[3]]
        assert await engine.queue.submit([call[7]]) == [again[7]]
        # And what was not in it is new, also beside what was.
        others = await engine.queue.submit(call[120:])
        assert others[:80] == again[120:] and not any(each.duplicate for each in others[80:])
        assert await engine.queue.submit(call[200:]) == [Submitted(each.id, True) for each in others[80:]]
        elsewhere = await engine.queue.submit([NewItem(REPORT, b"", dedupe_key=item.dedupe_key) for item in call])
        assert not any(each.duplicate for each in elsewhere)
        assert (await engine.queue.counts())["new"] == 500

    async def test_ids_are_unique_and_survive_a_reopening(self, engine: QueueEngine) -> None:
        ids = await put(engine, *(NewItem(MAIL, b"") for _ in range(300)))
        await engine.reopen()
        ids += await put(engine, *(NewItem(MAIL, b"") for _ in range(300)))
        assert len(set(ids)) == 600
        assert all(status is not None and status.state is State.NEW for status in await engine.queue.status(ids))


class LeasingLaws:
    """The laws of claims: which items are handed out, and in which order."""

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
        await engine.pass_time(0.1)  # claims may be shorter beside submissions
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
            Closed("", "", "ann"),  # of every function
            Closed("", "", "ann", priority=3),
            Closed("mail", priority=2),
            Closed("mail", priority=3),  # a lower rank alone
            Closed("mail", "", "ann", priority=3),
            Closed("mail", exact=True),  # what has neither label
            Closed("mail", "", "ann", exact=True),
            Closed("mail", "welcome", "", priority=2, exact=True),
            Closed("mail", "welcome", "ann", priority=3, exact=True),
            Closed("mail", exact=True, all_collections=True),  # what has no tenant
            Closed("mail", exact=True, all_tenants=True),  # what has no collection
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
        shut = {kind for kind in kinds if gate.covers(kind)}
        closed = await take(engine, wanting(closed=[gate]))
        assert set(closed.kinds) == set(kinds) - shut
        assert await nothing(engine, wanting(closed=[gate]))
        # And what comes due behind the closed ones is found, and they are found when the gate opens.
        due = engine.now() + 5
        await put(engine, *(NewItem(kind, b"", due=due) for kind in kinds))
        assert await nothing(engine, wanting(closed=[gate]))
        await engine.pass_time(6)
        assert set((await take(engine, wanting(closed=[gate]))).kinds) == set(kinds) - shut
        if shut:
            assert sorted((await take(engine)).kinds) == sorted([*shut, *shut])

    async def test_a_cell_of_every_function_keeps_all(self, engine: QueueEngine) -> None:
        await put(engine, NewItem(MAIL, b""), NewItem(REPORT, b""))
        assert await nothing(engine, wanting(closed=[Closed("")]))
        assert len((await take(engine)).ids) == 2

    async def test_what_a_gate_drops_is_handed_out_to_be_dropped(self, engine: QueueEngine) -> None:
        await put(engine, NewItem(MAIL, b""))
        assert len((await take(engine, wanting(closed=[Closed("mail", drop=True)]))).ids) == 1

    async def test_what_is_dropped_inside_of_what_is_paused_is_handed_out_and_nothing_else(
        self, engine: QueueEngine
    ) -> None:
        news = Kind("mail", 2, "news", "ann")
        await put(engine, NewItem(news, b""), NewItem(Kind("mail", 2, "welcome", "ann"), b""), NewItem(MAIL, b""))
        closed = [Closed("mail"), Closed("mail", "news", drop=True)]
        assert (await take(engine, wanting(closed=closed))).kinds == [news]
        assert await nothing(engine, wanting(closed=closed))
        assert len((await take(engine)).ids) == 2


class UsedOnceLaws:
    """Laws of the cost of a claim: functions, collections and tenants that have nothing waiting cost nothing."""

    async def test_a_claim_costs_no_more_after_many_collections_and_tenants_were_used_once(
        self, engine: QueueEngine
    ) -> None:
        async def one() -> None:
            await put(engine, NewItem(REPORT, b""))
            leased = await take(engine, closed)
            assert await engine.queue.settle(leased.fence, leased.ids, []) == []

        # Given what it takes to submit, lease and settle one item, while a tenant is closed
        closed = wanting(closed=[Closed(REPORT.function, tenant="closed")])
        await one()
        before = await calls_of(one)
        # When many collections and tenants were used once
        kinds = [Kind("mail", 2, f"c{n}", f"t{n}") for n in range(500)]
        kinds += [REPORT._replace(tenant=f"t{n}") for n in range(500)]
        await put(engine, *(NewItem(kind, b"") for kind in kinds))
        left = len(kinds)
        while left:
            leased = await take(engine)
            left -= len(leased.ids)
            assert await engine.queue.settle(leased.fence, leased.ids, []) == []
        assert await nothing(engine)
        # Then it takes no more than before
        after = await calls_of(one)
        assert after <= 1.1 * before + 20, f"{before} calls before, {after} after"
        # And nothing is told of them any more
        assert await engine.queue.due(10) == {}
        assert await ages(engine) == {}


class KeyLaws:
    """Laws of keys: at most one item of a key runs at a time, in order of submission."""

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
