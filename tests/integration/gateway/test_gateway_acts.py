"""Acts of operators: kept with who, from where, what, why, what was before, and how it ended."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any

import pytest
from scenes.fleet import Fleet

import tailrace
from tailrace.foundation.identity import whoami
from tailrace.model.act import Act
from tailrace.model.dead_letter import EVERY
from tailrace.model.errors import InvalidRequest, Unavailable, UnknownFunction
from tailrace.model.gate import Gate
from tailrace.model.limits import Quota, QuotaChange
from tailrace.wire.asking import HERE, place_of
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


async def test_pages_of_one_redrive_are_one_act(operator: GatewayClient) -> None:
    for _ in range(3):
        await operator.purge(EVERY)
    await operator.redrive(EVERY)
    await operator.redrive(EVERY, 100, 7)
    assert [each.what for each in await operator.acts()] == ["dead redrive", "dead purge"]


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
    assert (found[0].what, found[0].outcome) == ("gate pause", "it is not known: whoever asked left before it ended")


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
