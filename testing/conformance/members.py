"""The laws that every control store obeys with members of the fleet."""

from __future__ import annotations

import asyncio

from ...model.member import FleetMember, MemberOrder
from ...stores.control.control import Control
from .bench import StoreBench, StoreLaws

ANN, BOB = FleetMember("a", "host-1:7 è", '[{"name": "orders"}]'), FleetMember("b", "host-2:7", "[]")
LONG = 600.0


class MemberLaws(StoreLaws[Control]):
    """Laws of members: they are there for as long as they said; a request to one reaches it when it next reports, and
    is answered once."""

    async def test_members_tell_of_themselves_and_leave(self, store: StoreBench[Control]) -> None:
        version = (await store.engine.snapshot()).version
        assert await store.engine.members() == []
        assert await store.engine.tell_member(BOB, LONG) == []
        assert await store.engine.tell_member(ANN, LONG) == []
        assert await store.engine.members() == [ANN, BOB]
        # When one tells otherwise and the other leaves
        await store.engine.tell_member(BOB._replace(told="[1]"), LONG)
        await store.engine.forget_member("a")
        await store.engine.forget_member("never there")
        await store.reopen()
        assert await store.engine.members() == [BOB._replace(told="[1]")]
        assert (await store.engine.snapshot()).version == version

    async def test_a_member_that_tells_no_more_is_none(self, store: StoreBench[Control]) -> None:
        await store.engine.tell_member(ANN, 0.001)
        await store.engine.tell_member(BOB, LONG)
        store.clock.advance(0.01)
        async with asyncio.timeout(5):
            while len(await store.engine.members()) > 1:  # noqa: ASYNC110 - by the clock of a server
                await asyncio.sleep(0.005)
        assert await store.engine.members() == [BOB]

    async def test_what_is_asked_reaches_a_member_until_it_is_answered(self, store: StoreBench[Control]) -> None:
        await store.engine.tell_member(ANN, LONG)
        order = MemberOrder("7", "a", '{"seek": 5}')
        assert await store.engine.order("7") is None
        await store.engine.put_order(order)
        await store.engine.put_order(order._replace(asked="something else"))  # once under an id
        await store.engine.put_order(MemberOrder("8", "b", "for another"))
        for _ in range(2):
            assert await store.engine.tell_member(ANN, LONG) == [order]
            assert await store.engine.order("7") == order
            await store.reopen()
        # When it is answered, twice, then the first answer stays and it is asked no more
        await store.engine.answer_order("7", "done — è")
        await store.engine.answer_order("7", "done again")
        await store.engine.answer_order("9", "never asked")
        assert await store.engine.tell_member(ANN, LONG) == []
        assert await store.engine.order("7") == order._replace(answer="done — è")
        assert await store.engine.order("9") is None
