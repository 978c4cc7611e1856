"""Writes to a PostgreSQL whose synchronous standby is away: none is confirmed, the first time or again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from servers.standby import WithStandby

from tailrace.model.claim import Settle, State
from tailrace.model.dead_letter import DeadLetter
from tailrace.model.demand import Cell, Demand
from tailrace.model.errors import Unavailable
from tailrace.model.ledger import LedgerEntry, LedgerPlace
from tailrace.model.workload import Kind
from tailrace.stores.checkpoints.checkpoints import Mark
from tailrace.stores.postgres.server import PostgresOptions
from tailrace.stores.queue.postgres.options import PostgresQueueOptions
from tailrace.stores.queue.postgres.queue import PostgresQueue
from tailrace.stores.queue.queue import NewItem
from tailrace.stores.state.postgres import postgres_state

KIND = Kind("mail", 2)
LETTER = DeadLetter("1", "files", KIND, b"", "fatal", "it broke", 1, 0, 1.0, 2.0)
ROW = LedgerEntry(7, LedgerPlace.PARKING, 1)


async def test_nothing_is_confirmed_that_the_standby_lacks_and_all_of_it_when_it_is_back(
    with_standby: WithStandby,
) -> None:
    # Given a queue with items out, a state with an owned stream, and a standby that went away
    given = {"url": with_standby.primary.address, "timeout": 1.0, "connections": 12}
    queue, state = PostgresQueue(PostgresQueueOptions(**given)), postgres_state(PostgresOptions(**given))
    try:
        await queue.open()
        await state.ground.open()
        one, two, three = [each.id for each in await queue.submit([NewItem(KIND, b"")] * 3)]
        leased = await queue.lease(Demand({Cell("mail", 2): 2}, frozenset(), 2), 60.0, 1)
        assert leased is not None
        owner = await state.ownership.take("files", "", "me", 60.0, None)
        assert owner is not None
        await state.checkpoints.open("files", owner.epoch)
        await state.ledger.open("files", "", owner.epoch)
        await asyncio.to_thread(with_standby.wait_for_it)
        with_standby.program.kill()
        failed = Settle(two, leased.fence, State.FATAL_FAILURE, reason="why")
        writes: list[Callable[[], Awaitable[object]]] = [
            lambda: queue.submit([NewItem(KIND, b"", dedupe_key="once")]),
            lambda: queue.settle(leased.fence, [one], []),
            lambda: queue.settle(leased.fence, [], [failed]),
            lambda: queue.cancel([three]),
            lambda: state.results.put({"1": b"result"}),
            lambda: state.dead_letters.add([LETTER]),
            lambda: state.checkpoints.commit("files", owner.epoch, {"": Mark(5)}),
            lambda: state.ledger.write("files", "", [(None, ROW)], owner.epoch),
        ]
        # When each is called, and again because the first call was not answered
        for _ in range(2):
            answers = await asyncio.gather(*(write() for write in writes), return_exceptions=True)
            # Then none is confirmed: a repeat writes nothing, but waits as the first one did
            assert [type(answer) for answer in answers if not isinstance(answer, Unavailable)] == []
        # And once the standby is back each is confirmed, and the standby has it
        await asyncio.to_thread(with_standby.program.start)
        assert await queue.submit([NewItem(KIND, b"", dedupe_key="once")])
        assert await queue.settle(leased.fence, [one], []) == []
        for write in writes[2:]:
            await write()
    finally:
        await queue.close()
        await state.ground.close()
