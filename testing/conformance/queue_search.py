"""The laws of searching a queue, beside `QueueLaws`: an engine's test derives from both, with the same fixture."""

from __future__ import annotations

import pytest

from ...model.claim import Settle, State
from ...model.errors import InvalidRequest
from ...model.search import MOST_FOUND, Search
from ...model.workload import Kind
from ...stores.queue.queue import NewItem, Queue
from .queue_engine import MAIL, REPORT, QueueEngine, put, take


async def every(queue: Queue, search: Search) -> list[str]:
    """The ids on all pages of a search."""
    found: list[str] = []
    for _ in range(1000):
        page = await queue.find(search)
        assert len(page.statuses) <= search.limit
        found += [status.id for status in page.statuses]
        if not page.after:
            return found
        search = Search(
            search.function,
            search.tenant,
            search.states,
            search.key,
            search.since,
            search.until,
            page.after,
            search.limit,
        )
    raise AssertionError("the pages never end")


class SearchLaws:
    """The promises of a search."""

    async def test_a_search_finds_what_fits_the_newest_first(self, engine: QueueEngine) -> None:
        ann, bob = Kind("mail", 2, "", "ann"), Kind("mail", 0, "welcome", "bob")
        queue = engine.queue
        ids = await put(engine, NewItem(ann, b""), NewItem(bob, b"", key="k"), NewItem(REPORT, b"", key="k"))
        ids += await put(engine, NewItem(ann, b"", due=engine.now() + 1000))
        newest = ids[::-1]
        assert await every(queue, Search()) == newest
        assert await every(queue, Search(function="mail")) == [ids[3], ids[1], ids[0]]
        assert await every(queue, Search(tenant="ann")) == [ids[3], ids[0]]
        assert await every(queue, Search(function="mail", tenant="bob")) == [ids[1]]
        assert await every(queue, Search(key="k")) == [ids[2], ids[1]]
        assert await every(queue, Search(function="nobody")) == []
        assert await every(queue, Search(states=(State.NEW,))) == newest
        assert await every(queue, Search(states=(State.SUCCESS,))) == []
        [status] = (await queue.find(Search(tenant="bob"))).statuses
        assert [status] == await queue.status([ids[1]])

    async def test_a_search_by_state_follows_every_move(self, engine: QueueEngine) -> None:
        queue = engine.queue
        done, failed, back, stopped = await put(engine, *[NewItem(MAIL, b"")] * 4)
        await queue.cancel([stopped])
        leased = await take(engine)
        assert sorted(await every(queue, Search(states=(State.ENQUEUED,)))) == sorted([done, failed, back])
        others = [
            Settle(failed, leased.fence, State.FATAL_FAILURE, reason="broken"),
            Settle(back, leased.fence, State.RETRIABLE_FAILURE, 60.0, 1),
        ]
        assert await queue.settle(leased.fence, [done], others) == []
        for state, ids in (
            (State.SUCCESS, [done]),
            (State.FATAL_FAILURE, [failed]),
            (State.RETRIABLE_FAILURE, [back]),
            (State.CANCELLED, [stopped]),
            (State.ENQUEUED, []),
        ):
            assert await every(queue, Search(states=(state,))) == ids
        both = await queue.find(Search(states=(State.SUCCESS, State.FATAL_FAILURE)))
        assert both.statuses == [each for each in await queue.status([failed, done]) if each is not None]
        await engine.reopen()
        assert await every(engine.queue, Search()) == [stopped, back, failed, done]

    async def test_pages_go_on_where_the_one_before_ended(self, engine: QueueEngine) -> None:
        ids = await put(engine, *(NewItem(MAIL if number % 3 else REPORT, b"") for number in range(50)))
        page = await engine.queue.find(Search(limit=7))
        assert [status.id for status in page.statuses] == ids[:-8:-1]
        # What comes meanwhile is newer, and on no later page.
        await put(engine, NewItem(MAIL, b""))
        assert await every(engine.queue, Search(after=page.after, limit=7)) == ids[-8::-1]
        assert (
            await every(engine.queue, Search(function="report", limit=1, after=page.after))
            == [id for number, id in enumerate(ids) if not number % 3 and number < 43][::-1]
        )

    async def test_a_search_is_bounded_by_when_it_was_submitted(self, engine: QueueEngine) -> None:
        # Half seconds between, since an id tells of milliseconds only.
        first = await put(engine, NewItem(MAIL, b""))
        await engine.pass_time(1.0)
        middle = engine.now() - 0.5
        second = await put(engine, NewItem(MAIL, b""))
        assert await every(engine.queue, Search(since=middle)) == second
        assert await every(engine.queue, Search(until=middle)) == first
        assert await every(engine.queue, Search(since=engine.now() + 1000)) == []

    @pytest.mark.parametrize(
        "wrong", [Search(limit=0), Search(limit=MOST_FOUND + 1), Search(after="nonsense"), Search(since=-1.0)]
    )
    async def test_a_search_for_what_cannot_be_is_refused(self, engine: QueueEngine, wrong: Search) -> None:
        with pytest.raises(InvalidRequest):
            await engine.queue.find(wrong)
