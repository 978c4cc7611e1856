"""Submissions that are made at once share a call; each of them hears of itself alone."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from tailrace.model.errors import InvalidPayload, InvalidRequest, Unavailable
from tailrace.sdk.call import Call
from tailrace.sdk.shared_calls import MOST, SharedCalls
from tailrace.wire.gateway_messages import Accepted


class Gateway:
    """Takes calls, but none with what it is told to refuse."""

    def __init__(self, refuses: str = "", away: bool = False) -> None:
        self.calls: list[list[str]] = []
        self.refuses = refuses
        self.away = away
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    async def submit(self, calls: Sequence[Call]) -> list[Accepted]:
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
