"""Submissions that are made at once share a call; each of them hears of itself alone."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from tailrace.model.errors import InvalidPayload, InvalidRequest, Overloaded, Unavailable, UnknownFunction
from tailrace.sdk.async_client import AsyncClient
from tailrace.sdk.call import Call
from tailrace.sdk.conversation import Ask, Steps
from tailrace.sdk.handle import AsyncHandle
from tailrace.sdk.shared_calls import MOST, SharedCalls
from tailrace.wire.gateway_messages import Accepted
from tailrace.wire.v1 import gateway_pb2 as pb


class Gateway:
    """A gateway that takes calls, but none with an item that it is told to refuse."""

    def __init__(self, refuses: str = "", away: bool = False) -> None:
        self.calls: list[list[str]] = []
        self.refuses = refuses
        self.away = away
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    async def submit(self, calls: Sequence[Call], tokens: Sequence[str]) -> list[Accepted]:
        self.calls.append([call.function for call in calls])
        await self.may_answer.wait()
        if self.away:
            raise Unavailable("away")
        if self.refuses in self.calls[-1]:
            raise InvalidPayload(self.refuses)
        return [Accepted(call.function, False) for call in calls]


async def test_those_of_one_turn_go_together_and_each_gets_its_own_answer() -> None:
    gateway = Gateway()
    gathering = SharedCalls(gateway.submit)
    answers = await asyncio.gather(*(gathering.submit(Call(f"f{number}")) for number in range(5)))
    assert [answer.id for answer in answers] == gateway.calls[0] == [f"f{number}" for number in range(5)]
    # And who comes back at once goes together again
    await asyncio.gather(*(gathering.submit(Call(f"f{number}")) for number in range(3)))
    assert [len(call) for call in gateway.calls] == [5, 3]
    assert (await gathering.submit(Call("alone"))).id == "alone"


async def test_a_call_has_bounds() -> None:
    gateway = Gateway()
    gathering = SharedCalls(gateway.submit)
    await asyncio.gather(*(gathering.submit(Call("f")) for _ in range(2 * MOST + 1)))
    assert [len(call) for call in gateway.calls] == [MOST, MOST, 1]
    gateway.calls.clear()
    await asyncio.gather(*(gathering.submit(Call("f", text="x" * 700_000)) for _ in range(3)))
    assert [len(call) for call in gateway.calls] == [1, 1, 1]


async def test_one_that_is_refused_is_told_alone_and_takes_nobody_with_it() -> None:
    gateway = Gateway(refuses="bad")
    gathering = SharedCalls(gateway.submit)
    names = ("a", "bad", "b")
    answers = await asyncio.gather(*(gathering.submit(Call(name)) for name in names), return_exceptions=True)
    assert [type(answer) for answer in answers] == [Accepted, InvalidPayload, Accepted]
    assert sorted(map(len, gateway.calls)) == [1, 1, 1, 3]


@pytest.mark.parametrize(
    ("full", "told", "made"),
    [
        (
            "acme",
            [Accepted, Overloaded, Overloaded, Accepted],
            [["", "acme", "acme", "beta"], [""], ["acme"] * 2, ["beta"]],
        ),
        ("all", [Overloaded] * 4, [["", "acme", "acme", "beta"]]),
    ],
)
async def test_a_tenant_without_room_takes_no_other_with_it(full: str, told: list[Any], made: list[list[str]]) -> None:
    # Given a gateway at which one tenant has no room, or that takes nothing
    calls: list[list[str]] = []

    async def submit(given: Sequence[Call], tokens: Sequence[str]) -> list[Accepted]:
        calls.append([call.tenant for call in given])
        if full in ("all", *calls[-1]):
            raise Overloaded("no room", of_tenant=full != "all")
        return [Accepted("1", False) for _ in given]

    # When some of each are submitted at once
    shared = SharedCalls(submit)
    given = [Call("f", tenant=tenant) for tenant in ("", "acme", "acme", "beta")]
    answers = await asyncio.gather(*map(shared.submit, given), return_exceptions=True)
    # Then those of others are taken, in a call for each tenant, unless it was not for a tenant
    assert [type(each) for each in answers] == told
    assert calls == made


async def test_what_goes_again_alone_is_known_by_the_token_under_which_it_went_with_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Given gateways of which one may have stored both, and did not answer, before another one refused one of them
    requests: list[pb.SubmitRequest] = []

    async def run(client: AsyncClient, steps: Steps[Any]) -> Any:
        ask = next(steps)
        assert isinstance(ask, Ask)
        requests.append(ask.request)
        if any(each.function == "new" for each in ask.request.workloads):
            raise UnknownFunction("no function 'new' was ever registered")
        with pytest.raises(StopIteration) as end:
            steps.send(pb.SubmitReply(ids=["1"]))
        return end.value.value

    monkeypatch.setattr(AsyncClient, "_run", run)
    async with AsyncClient("127.0.0.1:1") as client:
        # When two are submitted at once
        old, new = await asyncio.gather(client.submit("old"), client.submit("new"), return_exceptions=True)
    # Then each went with the other and then alone, under one token of its own
    assert (type(old), type(new)) == (AsyncHandle, UnknownFunction)
    sent = [{each.function: each.submission_id for each in request.workloads} for request in requests]
    together = sent[0]
    assert sent[1:] == [{"old": together["old"]}, {"new": together["new"]}]
    assert together["old"] != together["new"] and all(together.values())


async def test_when_the_gateway_is_away_all_hear_of_it() -> None:
    gathering = SharedCalls(Gateway(away=True).submit)
    answers = await asyncio.gather(*(gathering.submit(Call("f")) for _ in range(3)), return_exceptions=True)
    assert [type(answer) for answer in answers] == [Unavailable] * 3


async def test_who_left_before_it_was_sent_is_not_submitted_and_closing_ends_what_is_under_way() -> None:
    gateway = Gateway()
    gathering = SharedCalls(gateway.submit)
    left, stays = (asyncio.ensure_future(gathering.submit(Call(name))) for name in ("left", "stays"))
    await asyncio.sleep(0)
    left.cancel()
    assert (await stays).id == "stays"
    gateway.may_answer.clear()
    under_way = asyncio.ensure_future(gathering.submit(Call("late")))
    while len(gateway.calls) < 2:
        await asyncio.sleep(0)
    await gathering.close(InvalidRequest("this client is closed"))
    with pytest.raises(InvalidRequest, match="closed"):
        await under_way
    assert gateway.calls == [["stays"], ["late"]]
