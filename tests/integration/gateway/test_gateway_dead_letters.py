"""Dead letters at the gateway: listed, shown, counted, purged, and each made a workload again exactly once."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

import tailrace
from tailrace.gateway.commands.missing_letters import missing_ids, of_function
from tailrace.model.claim import Leased, Settle, State
from tailrace.model.dead_letter import EVERY, IN_LINE, DeadLetter, LetterFilter
from tailrace.model.demand import Cell, Demand
from tailrace.model.errors import Overloaded, Unavailable
from tailrace.model.redrive import STREAM_ORIGIN, token
from tailrace.model.workload import Kind
from tailrace.stores.queue.admission import SUBMISSION_PREFIX
from tailrace.stores.queue.queue import NewItem
from tailrace.wire.gateway import GatewayClient

FULL = DeadLetter(
    id="a",
    tailer="orders",
    kind=Kind("add", 1, "nightly", "acme"),
    payload=b"{}",
    outcome="fatal",
    reason="bad",
    attempts=3,
    crashes=1,
    first_seen=1.0,
    died_at=2.0,
    key="k",
    headers=(("h", "v"),),
    progress="p",
    partition="0",
    position=17,
)


def letter(id: str, function: str = "add", **changes: Any) -> DeadLetter:
    return replace(FULL, id=id, kind=Kind(function, 1, "nightly", "acme"), key="", **changes)


async def claim(stores: Any) -> Leased:
    """Claims all that a tailer would get of the queue now."""
    cells = {Cell(function, priority): 100 for function in ("add", "send_email") for priority in range(4)}
    leased = await stores.queue.lease(Demand(cells, frozenset(), 100, 1 << 20), 30.0, 0.0)
    return leased or Leased(0, 0.0, [], [], [], [])


async def redrive_all(operator: GatewayClient, which: LetterFilter = EVERY, step: int = 2) -> list[Any]:
    """Takes every step of a redrive."""
    rows: list[Any] = []
    after = 0
    while True:
        reply = await operator.redrive(which, step, after)
        rows += reply.letters
        after = reply.next
        if not after:
            return rows


async def test_letters_are_listed_shown_and_counted(stores: Any, operator: GatewayClient) -> None:
    await stores.dead_letters.add([FULL, letter("b", "send_email")])
    letters, total = await operator.dead_letters()
    assert ([each.id for each in letters], total) == (["a", "b"], 2)
    which = LetterFilter(function="send_email")
    assert [each.id for each in (await operator.dead_letters(which))[0]] == ["b"]
    assert [each.id for each in (await operator.dead_letters(EVERY, 10, letters[0].number))[0]] == ["b"]
    assert await operator.dead_letter("a") == FULL
    with pytest.raises(tailrace.InvalidRequest, match="no dead letter 'c'"):
        await operator.dead_letter("c")
    with pytest.raises(tailrace.InvalidRequest, match="limit"):
        await operator.dead_letters(EVERY, limit=1001)
    counts = await operator.count_dead(LetterFilter(tailer="orders"))
    assert [(each.function, each.count, each.worn, each.known) for each in counts.counts] == [
        ("add", 1, 0, True),
        ("send_email", 1, 0, True),
    ]
    # And what was named and is not there is known
    assert await missing_ids(operator, LetterFilter(ids=("a", "c", "c"))) == ["c"]
    assert await missing_ids(operator, LetterFilter(ids=("a",), function="send_email")) == ["a"]
    assert await of_function(operator, LetterFilter(function="send_emial")) == [
        "no dead letter is of function 'send_emial'; there are some of add, send_email"
    ]
    assert await of_function(operator, LetterFilter(function="add", attempts=99)) == []


async def test_a_redriven_letter_is_a_fresh_workload_and_a_second_death_tells_both(
    stores: Any, operator: GatewayClient
) -> None:
    # Given a letter of a stream
    await stores.dead_letters.add([FULL])
    # When it is redriven
    [row] = await redrive_all(operator)
    # Then it waits in the queue, attempts anew, with its origin, everything else as it was; and the letter is gone
    leased = await claim(stores)
    assert (leased.ids, leased.kinds, leased.payloads, leased.attempts) == ([row.workload], [FULL.kind], [b"{}"], [1])
    assert (leased.extras[0].key, leased.extras[0].headers) == ("k", (("h", "v"), (STREAM_ORIGIN, FULL.id)))
    assert await stores.dead_letters.count() == 0
    # When it dies again, its letter names the origin, the first death and the number of redrives
    died = replace(FULL, id=row.workload, tailer="queue", partition="", position=-1, reason="worse", died_at=9.0)
    await stores.dead_letters.add([died])
    again = await operator.dead_letter(row.workload)
    assert again.past is not None
    assert (again.redrives, again.past.tailer, again.past.id, again.first_seen) == (1, "orders", "a", 1.0)
    assert [(death.reason, death.attempts, death.crashes) for death in again.past.deaths] == [("bad", 3, 1)]
    assert again.reason == "worse"


async def test_a_loop_of_redrives_ends_at_a_person(stores: Any) -> None:
    running = stores.gateway(max_redrives=2)
    await running.start()
    async with GatewayClient(running.address) as operator:
        await stores.dead_letters.add([FULL])
        for _ in range(2):
            [row] = await redrive_all(operator)
            assert not row.refused
            leased = await claim(stores)
            await stores.dead_letters.add([replace(FULL, id=row.workload, tailer="queue", position=-1)])
            await stores.queue.settle(leased.fence, [], [Settle(row.workload, leased.fence, State.FATAL_FAILURE)])
        [row] = await redrive_all(operator)
        assert "max_redrives" in row.refused
        assert [(each.count, each.worn) for each in (await operator.count_dead()).counts] == [(1, 1)]
        assert await stores.dead_letters.count() == 1
    await running.stop()


async def test_what_cannot_go_stays_with_the_reason_and_the_rest_goes(stores: Any, operator: GatewayClient) -> None:
    # Given letters of nobody's function, of no function, of one too large for the queue, and a good one
    large = letter("large", payload=bytes(5 << 20))
    await stores.dead_letters.add([letter("odd", "gone"), letter("nameless", ""), large, letter("good")])
    rows = {row.id: row for row in await redrive_all(operator, step=10)}
    assert "'gone'" in rows["odd"].refused
    assert "no function" in rows["nameless"].refused
    assert "bytes" in rows["large"].refused
    assert (await claim(stores)).ids == [rows["good"].workload]
    # Then those stay, none of them half moved
    assert [each.id for each in await stores.dead_letters.list(EVERY, 10)] == ["odd", "nameless", "large"]
    assert await stores.dead_letters.list(LetterFilter(moving=True), 10) == []


async def test_a_letter_whose_workload_has_not_ended_waits(
    stores: Any, operator: GatewayClient, client: tailrace.AsyncClient
) -> None:
    # Given a letter that is durable while its workload is still claimed
    handle = await client.submit("add")
    leased = await claim(stores)
    await stores.dead_letters.add([letter(handle.id, position=-1)])
    [row] = await redrive_all(operator)
    assert "not ended" in row.refused
    # When it has ended, the letter goes
    await stores.queue.settle(leased.fence, [], [Settle(handle.id, leased.fence, State.FATAL_FAILURE)])
    [row] = await redrive_all(operator)
    assert (await claim(stores)).ids == [row.workload]


async def test_a_letter_whose_workload_came_back_and_succeeded_stays(
    stores: Any, operator: GatewayClient, client: tailrace.AsyncClient
) -> None:
    # Given a letter that was durable before its tailer died, and a workload that ran again then, and succeeded
    handle = await client.submit("add")
    await stores.dead_letters.add([letter(handle.id, position=-1)])
    leased = await claim(stores)
    await stores.queue.settle(leased.fence, [handle.id], [])
    # When it is redriven, it does not run a third time
    [row] = await redrive_all(operator)
    assert "success: purge" in row.refused
    assert (await claim(stores)).ids == []


async def test_what_died_again_before_its_first_letter_went_keeps_its_past(
    stores: Any, operator: GatewayClient
) -> None:
    # Given a redrive that was cut short when the queue had the workload, which died again at once
    await stores.dead_letters.add([letter("first")])
    [known] = await stores.dead_letters.list(EVERY, 10, 0, 1 << 20)
    await stores.dead_letters.mark([known.number], True)
    [stored] = await stores.queue.submit([NewItem(known.kind, b"{}", dedupe_key=SUBMISSION_PREFIX + token(known))])
    leased = await claim(stores)
    await stores.dead_letters.add([letter(stored.id, position=-1, tailer="queue")])
    await stores.queue.settle(leased.fence, [], [Settle(stored.id, leased.fence, State.FATAL_FAILURE)])
    # When all letters are redriven
    rows = await redrive_all(operator, step=10)
    # Then it became one workload, which was the first letter before it was the second one
    [last] = (await claim(stores)).ids
    assert rows[-1].workload == last
    await stores.dead_letters.add([letter(last, position=-1, tailer="queue")])
    died = await operator.dead_letter(last)
    assert died.past is not None
    assert (died.past.redrives, died.past.id, len(died.past.deaths)) == (2, "first", 2)


async def test_a_redrive_goes_step_by_step_through_what_the_filter_means(stores: Any, operator: GatewayClient) -> None:
    await stores.dead_letters.add([letter(f"{number}", ("add", "send_email")[number % 2]) for number in range(10)])
    rows = await redrive_all(operator, LetterFilter(function="add"), step=2)
    assert [row.id for row in rows] == ["0", "2", "4", "6", "8"]
    assert sorted((await claim(stores)).ids) == sorted(row.workload for row in rows)
    assert await stores.dead_letters.counts() == {"send_email": 5}


async def test_the_letter_of_an_item_that_stood_in_a_line_is_left_to_its_tailer(
    stores: Any, operator: GatewayClient
) -> None:
    # Given a letter of an item that had a place in a stream's order, and one of another kind
    await stores.dead_letters.add([replace(FULL, id="orders/0/17", headers=(IN_LINE,)), letter("b", position=-1)])
    for _ in range(2):  # When they are redriven, and redriven once more
        rows = await redrive_all(operator)
        assert (rows[0].id, rows[0].workload, rows[0].refused) == ("orders/0/17", "orders/0/17", "")
    # Then only the other one is a workload, and the first one is marked, with its past
    assert len((await claim(stores)).ids) == 1
    [stays] = await stores.dead_letters.list(LetterFilter(moving=True), 10)
    assert (stays.id, stays.in_line, stays.redrives) == ("orders/0/17", True, 1)
    assert (await operator.dead_letter("orders/0/17")).in_line
    # And a purge leaves it, unless it is named
    await stores.dead_letters.add([letter("c")])
    assert await operator.purge(EVERY, 1) == {"add": 1}
    assert await operator.purge(EVERY, 1) == {}
    assert await operator.purge(LetterFilter(ids=("orders/0/17",))) == {"add": 1}


async def test_a_purge_forgets_what_the_filter_means(stores: Any, operator: GatewayClient) -> None:
    await stores.dead_letters.add([letter(f"{number}", ("add", "send_email")[number % 2]) for number in range(10)])
    which = LetterFilter(function="add")
    assert await operator.purge(which, 3) == {"add": 3}
    assert await operator.purge(which) == {"add": 2}
    assert await operator.purge(which) == {}
    assert await stores.dead_letters.counts() == {"send_email": 5}
    assert (await claim(stores)).ids == []


class Breaking:
    """A store of which one method fails, before it does anything or after it did."""

    def __init__(self, engine: Any, method: str, after: bool, error: Exception) -> None:
        self._engine = engine
        self._method = method
        self._after = after
        self._error = error
        self.broken = True

    def __getattr__(self, name: str) -> Any:
        whole = getattr(self._engine, name)
        if name != self._method or not self.broken:
            return whole

        async def half(*arguments: Any) -> Any:
            self.broken = False
            if self._after:
                await whole(*arguments)
            raise self._error

        return half


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("where", ["mark", "submit", "moved"])
@pytest.mark.parametrize("restart", [False, True], ids=["goes on", "dies"])
async def test_an_interrupted_redrive_moves_each_letter_once(
    stores: Any, where: str, after: bool, restart: bool
) -> None:
    # Given a gateway whose store fails at one step of a redrive
    await stores.dead_letters.add([letter("a"), letter("b")])
    queue, letters = stores.queue, stores.dead_letters
    error = RuntimeError("killed here") if restart else Unavailable("away")
    breaking = Breaking(queue if where == "submit" else letters, where, after, error)
    first = replace(stores, **{"queue" if where == "submit" else "dead_letters": breaking}).gateway()
    await first.start()
    async with GatewayClient(first.address) as operator:
        await asyncio.sleep(0)
        with pytest.raises(tailrace.TailraceError):
            await operator.redrive(EVERY)
        if restart:
            await first.stop()
    # When it, or the next one, goes on, and the operator says it again
    running = stores.gateway() if restart else first
    if restart:
        await running.start()
    async with GatewayClient(running.address) as operator:
        await redrive_all(operator)
        # Then each is there once, and no letter is left
        leased = await claim(stores)
        assert len(leased.ids) == 2
        assert len(set(leased.ids)) == 2
        assert await letters.count() == 0
        assert (await claim(stores)).ids == []
        # And a second death of each still knows of the first
        await letters.add([letter(id, position=-1) for id in leased.ids])
        assert [each.redrives for each in await letters.list(EVERY, 10)] == [1, 1]
    await running.stop()


async def test_what_a_full_queue_refuses_is_no_longer_marked(stores: Any) -> None:
    await stores.dead_letters.add([letter("a")])
    full = Breaking(stores.queue, "submit", False, Overloaded("full", 5.0))
    running = replace(stores, queue=full).gateway()
    await running.start()
    async with GatewayClient(running.address) as operator:
        with pytest.raises(Overloaded, match="full"):
            await operator.redrive(EVERY)
        assert await stores.dead_letters.list(LetterFilter(moving=True), 10) == []
        assert await stores.dead_letters.count() == 1
    await running.stop()
