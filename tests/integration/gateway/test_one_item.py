"""One workload at a time through a gateway: looked at, and given another due time or priority."""

from __future__ import annotations

from typing import Any

import pytest

import tailrace
from tailrace.model.claim import Settle, State
from tailrace.model.demand import Cell, Demand
from tailrace.model.function_spec import FunctionSpec
from tailrace.model.limits import Quota
from tailrace.wire.gateway import GatewayClient

EVERYTHING = Demand(cells={Cell("add", rank): 1000 for rank in range(4)}, total=1000)


async def lease(stores: Any) -> Any:
    leased = await stores.queue.lease(EVERYTHING, 30.0, 0)
    assert leased is not None
    return leased


async def test_what_waits_is_moved_to_now_and_made_urgent(stores: Any, client: tailrace.AsyncClient) -> None:
    # Given a workload that is due in an hour
    handle = await client.submit("add", a=1, delay="1h", priority="reporting")
    assert await stores.queue.lease(EVERYTHING, 30.0, 0) is None
    # When it is to run now, as an urgent one
    found = await client.reschedule(handle.id, now=True, priority="interactive")
    # Then it is due, and the answer says how it is
    assert (found.outcome, found.why, found.changed, found.id) == ("changed", "", True, handle.id)
    assert found.status is not None and found.status.kind.priority == 0
    assert (await lease(stores)).ids == [handle.id]


async def test_a_delay_and_a_moment_say_the_same(client: tailrace.AsyncClient) -> None:
    handle = await client.submit("add", a=1)
    first = await client.reschedule(handle.id, delay="10m")
    assert first.status is not None
    second = await client.reschedule(handle.id, at=first.status.due_at + 60)
    assert second.status is not None
    assert second.status.due_at == pytest.approx(first.status.due_at + 60, abs=0.01)
    # And a time that is past is now
    third = await client.reschedule(handle.id, at=12345.0)
    assert third.status is not None and third.status.due_at > first.status.created_at - 60


async def test_what_does_not_wait_is_told_as_what_it_is(stores: Any, client: tailrace.AsyncClient) -> None:
    # Given one that is out, one that is over, and one that failed for good
    out, done, failed = [await client.submit("add", a=number) for number in range(3)]
    leased = await lease(stores)
    fatal = Settle(failed.id, leased.fence, State.FATAL_FAILURE, attempts=1, reason="no")
    await stores.queue.settle(leased.fence, [done.id], [fatal])
    # When each is to run now, Then each answer says what it is and what can be done
    for id, outcome, words in (
        (out.id, "out", "handed out by a tailer"),
        (done.id, "ended", "submit it anew"),
        (failed.id, "ended", "tailrace dead redrive"),
        ("0" * 16, "unknown", "tailrace find"),
        ("nonsense", "unknown", "never submitted"),
        ("spool-0000000000000001", "unknown", "never submitted"),
    ):
        found = await client.reschedule(id, now=True)
        assert (found.outcome, found.changed) == (outcome, False)
        assert words in found.why
    # And a look at the ones that are over says where the rest of them is
    for id, words in ((done.id, "tailrace result"), (failed.id, "tailrace dead show"), ("f" * 16, "never submitted")):
        with pytest.raises(tailrace.InvalidRequest, match=words):
            await client.peek(id)


async def test_one_behind_its_key_is_told_so(client: tailrace.AsyncClient) -> None:
    await client.submit("add", a=1, key="k", delay="1h")
    second = await client.submit("add", a=2, key="k", delay="2h")
    found = await client.reschedule(second.id, now=True)
    assert (found.outcome, found.changed) == ("behind", True)
    assert "ordering key" in found.why


async def test_one_that_would_be_too_late_is_not_moved(client: tailrace.AsyncClient) -> None:
    handle = await client.submit("add", a=1, expires_after="10m")
    before = (await handle.status()).due_at
    found = await client.reschedule(handle.id, delay="20m")
    assert found.outcome == "expires"
    assert "10m from now" in found.why or "9m5" in found.why
    assert (await handle.status()).due_at == before


async def test_an_item_of_a_stream_is_refused_with_what_can_be_done(client: tailrace.AsyncClient) -> None:
    for call in (client.reschedule("orders/0/42", now=True), client.peek("orders/0/42")):
        with pytest.raises(tailrace.InvalidRequest, match="item of the stream that the tailer 'orders' reads"):
            await call


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "nothing is to be changed"),
        ({"now": True, "delay": "1s"}, "one of delay, at and now"),
        ({"at": 5.0, "delay": 1}, "one of delay, at and now"),
        ({"delay": "5000d"}, "max_delay"),
        ({"at": -1.0}, "not a moment"),
        ({"priority": "urgent"}, "unknown priority"),
        ({"priority": 7}, "unknown priority"),
        ({"delay": "soon"}, "not a duration"),
    ],
)
async def test_options_that_make_no_sense_change_nothing(
    client: tailrace.AsyncClient, options: dict[str, Any], words: str
) -> None:
    handle = await client.submit("add", a=1, delay="1h")
    before = (await handle.status()).due_at
    with pytest.raises(tailrace.InvalidRequest, match=words):
        await client.reschedule(handle.id, **options)
    assert (await handle.status()).due_at == before


async def test_a_look_shows_the_payload_the_key_and_the_headers(client: tailrace.AsyncClient) -> None:
    handle = await client.submit("add", a="\x1b[2J" * 1000, key="k", tenant="ann", headers={"trace": "x"}, delay="1h")
    found = await client.peek(handle.id, max_bytes=100)
    whole = await client.peek(handle.id)
    assert found.payload == whole.payload[:100]
    assert (len(whole.payload), found.size) == (found.size, whole.size)
    assert (found.key, dict(found.headers)["trace"], found.status.kind.tenant) == ("k", "x", "ann")
    assert (await client.peek(handle.id, max_bytes=0)).payload == b""
    with pytest.raises(tailrace.InvalidRequest, match="max_bytes"):
        await client.peek(handle.id, max_bytes=-1)


@pytest.mark.parametrize("id", ["half \ud800", "x" * 100_000, "", "nul\0", "../../etc", "spool-", "spool-\0"])
async def test_a_hostile_id_is_one_that_nobody_knows(client: tailrace.AsyncClient, id: str) -> None:
    with pytest.raises(tailrace.InvalidRequest) as caught:
        await client.peek(id)
    assert len(str(caught.value)) < 1000
    if "\ud800" not in id and id.count("/") < 2:
        assert (await client.reschedule(id, now=True)).outcome == "unknown"


async def test_nobody_asks_for_more_than_a_tenant_may_have(
    stores: Any, client: tailrace.AsyncClient, operator: GatewayClient
) -> None:
    # Given a function that is interactive, one that waits, and a bound for its tenant that comes later
    await stores.control.register([FunctionSpec("add", priority=tailrace.Priority.INTERACTIVE)])
    before = await client.submit("add", a=0, tenant="acme", priority="reporting", delay="1h")
    await operator.set_quota(Quota(tenant="acme", highest="eventual"))
    # When something more urgent is asked for, Then that is refused, whether it is new or waits
    for call in (
        client.submit("add", a=1, tenant="acme", priority="user_visible"),
        client.submit_many([tailrace.Call("add", a=1, tenant="acme", priority=0)] * 3),
        client.reschedule(before.id, priority="interactive"),
    ):
        with pytest.raises(tailrace.InvalidRequest, match=r"tenant 'acme' may have eventual at most"):
            await call
    assert (await before.status()).kind.priority == 3
    # And what does not ask has what it may, as have those who ask for that
    plain = await client.submit("add", a=1, tenant="acme")
    assert (await plain.status()).kind.priority == 2
    assert (await client.reschedule(before.id, priority="eventual")).changed
    other = await client.submit("add", a=1, tenant="bob")
    assert (await other.status()).kind.priority == 0
    # And when the bound is gone, all is as before
    await operator.set_quota(Quota(tenant="acme"))
    assert (await client.reschedule(before.id, priority="interactive")).changed
    again = await client.submit("add", a=1, tenant="acme")
    assert (await again.status()).kind.priority == 0
