"""Acts of operators: kept with their author, origin, action and reason, the state before, and the end."""

from __future__ import annotations

import asyncio
import json
import logging
from datetime import UTC, datetime
from typing import Any

import pytest
from scenes.fleet import Fleet

import tailrace
from tailrace.foundation.clock import SYSTEM_CLOCK
from tailrace.foundation.identity import whoami
from tailrace.model.act import Act
from tailrace.model.dead_letter import EVERY, DeadLetter, LetterFilter
from tailrace.model.errors import InvalidRequest, Unavailable, UnknownFunction
from tailrace.model.gate import Gate
from tailrace.model.limits import Quota, QuotaChange
from tailrace.model.workload import Kind
from tailrace.wire.asker import HERE, place_of
from tailrace.wire.gateway import GatewayClient
from tailrace.wire.ports.tokens import TokenOrder

DAY = 86_400.0


async def test_what_changes_something_is_kept_and_what_only_looks_is_not(
    operator: GatewayClient, client: tailrace.AsyncClient, stores: Any
) -> None:
    # Given operators who change gates, quotas, tokens, letters, items and schedules, and look at some
    await operator.set_gate(Gate("add", "", "pause", "ann@host", "incident 7"))
    await operator.set_gate(Gate("add", "", "resume"))
    await operator.set_quota(Quota("add", 5))
    await operator.apply_quotas(QuotaChange((await operator.limits()).quotas_version, "bob@host", "less", 0.0, ()))
    secret = (await operator.create_token(TokenOrder("ci", ("submit:add",), DAY))).secret
    await operator.revoke_token("ci")
    assert await operator.purge(EVERY) == {}
    handle = await client.submit("add", delay=60.0, a=1, b=2)
    assert await handle.cancel() == "cancelled"
    with pytest.raises(UnknownFunction):
        await operator.set_quota(Quota("never_heard_of", 5))
    await operator.quota_changes()
    await operator.tokens()
    await operator.dead_letters()
    # When somebody asks what was done
    found = await operator.acts()
    # Then each is there, the newest first, with who says so and from where
    told = [(each.what, each.on, each.who, each.why, each.outcome) for each in reversed(found)]
    me = whoami()
    assert told[:8] == [
        ("gate pause", "add", "ann@host", "incident 7", "done"),
        ("gate resume", "add", me, "", "done"),
        ("quota set", '{"function": "add"}', me, "", "done"),
        ("quota apply", '{"function": "add"}', "bob@host", "less", "done"),
        ("auth token create", "ci", me, "", "done"),
        ("auth token revoke", "ci", me, "", "done"),
        ("dead purge", "all dead letters", me, "", "0 letters were purged"),
        ("cancel", handle.id, me, "", "1 cancelled"),
    ]
    assert told[8][:1] == ("quota set",) and "refused: no function 'never_heard_of'" in told[8][4]
    assert len(told) == 9 and {each.place for each in found} == {HERE}
    # And with what was before and after, but never a secret
    by = {each.what: each for each in found[1:]}
    assert (by["gate pause"].before, json.loads(by["gate pause"].after)["action"]) == ("", "pause")
    assert json.loads(by["gate resume"].before)["why"] == "incident 7" and by["gate resume"].after == ""
    assert (by["quota set"].before, json.loads(by["quota set"].after)["concurrency"]) == ("", 5)
    assert json.loads(by["quota apply"].before)["concurrency"] == 5 and by["quota apply"].after == ""
    assert "submit:add" in by["auth token create"].after and "submit:add" in by["auth token revoke"].before
    assert secret not in repr(await stores.control.acts())
    # And they are found by what they hold
    assert [each.what for each in await operator.acts(who="bob")] == ["quota apply"]
    assert [each.what for each in await operator.acts(what="gate", limit=1)] == ["gate resume"]
    assert await operator.acts(on="nothing has this name") == []
    with pytest.raises(InvalidRequest, match="limit is 0"):
        await operator.acts(limit=0)


def letters(function: str, count: int) -> list[DeadLetter]:
    """Letters of a function that nobody has redriven yet."""
    return [
        DeadLetter(f"{function}-{n}", "queue", Kind(function), b"{}", "fatal", "bad", 1, 0, 1.0, 2.0)
        for n in range(count)
    ]


async def test_pages_of_one_purge_are_one_act_with_their_sum(stores: Any, operator: GatewayClient) -> None:
    # Given letters of two functions
    await stores.dead_letters.add([*letters("add", 5), *letters("gone", 2)])
    which = LetterFilter(function="add")
    # When those of one are purged step by step
    while await operator.purge(which, 2, "a test", "run-1"):
        pass
    # Then that is one act, with how many there were, why, and what was done in all
    [purge] = await operator.acts()
    assert (purge.what, purge.why, purge.outcome) == ("dead purge", "a test", "5 letters were purged")
    assert json.loads(purge.before) == {"add": 5}
    # When the same person purges the same again, then that is another act, at once
    assert await operator.purge(which, 2, run="run-2") == {}
    assert await operator.purge(which, 2, run="run-2") == {}
    assert await operator.purge(LetterFilter(function="gone"), 1) == {"gone": 1}
    assert [(each.outcome, each.before) for each in (await operator.acts())[:3]] == [
        ("1 letters were purged, and there may be more", '{"gone": 2}'),
        ("0 letters were purged", ""),
        ("0 letters were purged", ""),
    ]


async def test_an_act_whose_pages_stop_says_how_far_it_came(
    stores: Any, operator: GatewayClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a redrive of three letters, which nobody runs, whose caller is gone after the second step
    await stores.dead_letters.add(letters("nobody_runs_this", 3))
    step = await operator.redrive(EVERY, 1, run="run-1")
    monkeypatch.setattr("tailrace.gateway.acts.BETWEEN_PAGES", 0.01)
    await operator.redrive(EVERY, 1, step.next, run="run-1")
    # Then its act ends by itself
    async with asyncio.timeout(5):
        while not (found := await stores.control.acts())[0].outcome:
            await asyncio.sleep(0.01)
    assert found[0].outcome == "0 of 2 letters were redriven, and there may be more"


async def test_a_gateway_that_stops_ends_acts_of_which_pages_were_to_come(stores: Any) -> None:
    server = stores.gateway()
    await server.start()
    await stores.dead_letters.add(letters("add", 3))
    async with GatewayClient(server.address) as operator:
        await operator.purge(EVERY, 2, run="run-1")
        assert (await stores.control.acts())[0].outcome == ""
    await server.stop()
    assert (await stores.control.acts())[0].outcome == "2 letters were purged, and there may be more"


async def test_what_a_workload_was_before_is_told(operator: GatewayClient, client: tailrace.AsyncClient) -> None:
    # Given a workload that is given another due time, and cancelled
    handle = await client.submit("add", delay=60.0, a=1, b=2)
    later = float(int(SYSTEM_CLOCK.wall()) + 3600)
    await client.reschedule(handle.id, at=later, priority="reporting", why="later")
    await client.cancel(handle.id, why="not at all")
    # Then each act has how it stood before, and why
    at = datetime.fromtimestamp(later, UTC).isoformat()
    cancelled, moved = (await operator.acts())[:2]
    was, became = json.loads(moved.before)[handle.id], json.loads(cancelled.before)[handle.id]
    assert (was["state"], was["priority"], was["function"]) == ("new", "eventual", "add")
    assert json.loads(moved.after) == {"at": at, "priority": "reporting"}
    assert (became["due_at"], became["priority"]) == (at, "reporting")
    assert (moved.why, cancelled.why) == ("later", "not at all")


async def test_nobody_is_kept_from_acting_since_nobody_knows_what_was_before(
    stores: Any, operator: GatewayClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a store of letters that counts none for the moment
    async def away(which: LetterFilter) -> dict[str, int]:
        raise Unavailable("the disk is gone")

    monkeypatch.setattr(stores.dead_letters, "counts", away)
    # When letters are purged, then they are, and the act says that nobody knew how many there were
    assert await operator.purge(EVERY) == {}
    [act] = await operator.acts()
    assert (act.before, act.outcome) == ("it is not known: the disk is gone", "0 letters were purged")


async def test_an_act_is_done_and_logged_although_the_store_does_not_take_it(
    stores: Any, operator: GatewayClient, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    # Given a store that keeps no acts for the moment
    async def away(act: Act) -> int:
        raise Unavailable("the disk is full")

    monkeypatch.setattr(stores.control, "begin_act", away)
    # When a function is paused
    with caplog.at_level(logging.INFO, "tailrace.gateway.acts"):
        await operator.set_gate(Gate("add", "", "pause", "ann@host", "incident 7"))
    # Then it is, and the log says by whom
    assert [gate.function for gate in (await operator.limits()).gates] == ["add"]
    assert "kept nowhere but in this log (the disk is full)" in caplog.text and "ann@host" in caplog.text


async def test_who_leaves_before_the_end_has_acted_all_the_same(
    stores: Any, operator: GatewayClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a change that takes long, of which the operator does not wait for the end
    begun = asyncio.Event()

    async def put_gate(gate: Gate) -> int:
        begun.set()
        await asyncio.Event().wait()
        return 0

    monkeypatch.setattr(stores.control, "put_gate", put_gate)
    leaving = asyncio.create_task(operator.set_gate(Gate("add", "", "pause")))
    await begun.wait()
    leaving.cancel()
    await asyncio.wait([leaving])
    # Then it is kept, and that nobody knows how it ended
    async with asyncio.timeout(5):
        while not (found := await stores.control.acts())[0].outcome:
            await asyncio.sleep(0.01)
    assert (found[0].what, found[0].outcome) == ("gate pause", "not known: the caller left before the act ended")


async def test_beyond_one_machine_an_act_is_of_whom_the_certificate_names(
    stores: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet = Fleet(tmp_path / "fleet", monkeypatch)
    with fleet.as_(fleet.issue("gateway")):
        server = stores.gateway(listen="tls:127.0.0.1:0")
        await server.start()
    try:
        with fleet.as_(fleet.issue("operator")):
            async with GatewayClient(server.address) as operator:
                await operator.set_gate(Gate("add", "", "pause", "mallory"))
                await operator.set_quota(Quota("add", 5))
                found = await operator.acts()
        assert [each.who.partition(" as ")[::2] for each in found] == [
            (whoami(), "operator x"),
            ("mallory", "operator x"),
        ]
    finally:
        await server.stop()


@pytest.mark.parametrize(
    ("peer", "place"),
    [
        ("ipv4:10.0.0.7:4711", "10.0.0.7"),
        ("ipv4:127.0.0.1:4711", HERE),
        ("ipv6:%5B::1%5D:4711", HERE),
        ("ipv6:%5Bfe80::1%5D:4711", "fe80::1"),
        ("unix:", HERE),
        ("", HERE),
    ],
)
def test_where_a_caller_is(peer: str, place: str) -> None:
    assert place_of(peer) == place
