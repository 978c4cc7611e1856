"""The queue on real PostgreSQL: refusals of the schema, several nodes at once, and the words for troubles."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence

import psycopg
import pytest
from servers.queue_nodes import PostgresNodes

from tailrace.model.claim import Settle, State
from tailrace.model.demand import Cell, Demand
from tailrace.model.errors import ConfigError, NotConnected
from tailrace.model.workload import Kind
from tailrace.stores.queue.queue import NewItem

MAIL = Kind("mail", 2)
ANY = Demand({Cell("mail", 2): 1000}, frozenset(), 1000)
LEASE = 30.0


# What the schema refuses.


async def test_a_writer_that_bypasses_our_code_is_refused(nodes: PostgresNodes) -> None:
    # Given an item that is out, one that waits, and one that waits for an older one of its key
    queue = await nodes.queue()
    [(out, _)] = await queue.submit([NewItem(MAIL, b"")])
    await queue.lease(ANY, LEASE, 0)
    ids = [each.id for each in await queue.submit([NewItem(MAIL, b"", key="k"), NewItem(MAIL, b"", key="k")])]
    head, behind = (int(each, 16) for each in ids)
    # Then each of these is refused by the database itself
    for wrong in (
        f"UPDATE S.tasks SET fence = 0 WHERE id = {int(out, 16)}",
        f"UPDATE S.tasks SET state = 0, claim = NULL WHERE id = {int(out, 16)}",
        f"UPDATE S.tasks SET state = 2, claim = 1, next_trigger = NULL WHERE id = {head}",
        f"UPDATE S.tasks SET state = 2, claim = 1, next_trigger = NULL, fence = fence + 1 WHERE id = {behind}",
        f"UPDATE S.tasks SET state = 4, claim = 1, next_trigger = NULL WHERE id = {head}",
        f"UPDATE S.tasks SET state = 10 WHERE id = {head}",
        f"INSERT INTO S.tasks (id, due, next_trigger, lane, kind, size) VALUES ({head}, 0, 0, 1, 1, 0)",
        f"INSERT INTO S.keyed (key, id, due, head) VALUES ('k', {int(out, 16)}, 0, true)",
    ):
        with pytest.raises(psycopg.IntegrityError):
            await nodes.run(wrong)


async def test_a_poll_that_finds_nothing_writes_nothing(nodes: PostgresNodes) -> None:
    # Given a queue with an item that is not due
    queue = await nodes.queue()
    await queue.submit([NewItem(MAIL, b"", due=nodes.clock.wall() + 100)])
    assert await queue.lease(ANY, LEASE, 0) is None
    tables = await nodes.run(f"SELECT tablename FROM pg_tables WHERE schemaname = '{nodes.schema}'")
    # The newest transaction that wrote or locked a row, of each table: that of the server counts what it does itself
    newest = "SELECT '{0}', max(xmin::text::bigint), max(xmax::text::bigint) FROM S.{0}"
    written = " UNION ALL ".join(newest.format(name) for (name,) in tables)
    before = await nodes.run(written)
    # When it is polled, then no row of it is another one
    for _ in range(20):
        assert await queue.lease(ANY, LEASE, 0) is None
    assert sorted(await nodes.run(written)) == sorted(before)


# Several nodes.


async def test_what_was_looked_for_in_vain_is_not_looked_for_again_before_its_time(nodes: PostgresNodes) -> None:
    # Given a queue of which a node asks again and again for what is not there, with a poll once a minute
    one, other = await nodes.queue(poll=60), await nodes.queue()
    asked: list[str] = []
    read = one.ground.read
    one.ground.read = lambda statement, *rest: asked.append(statement) or read(statement, *rest)
    for _ in range(5):
        assert await one.lease(ANY, LEASE, 0.01) is None
    # Then it looked once
    assert sum("queue_look" in each or "queue_end_leases" in each for each in asked) == 1
    # When it submits something itself, it looks at once; what it does not hear of waits for the poll
    await one.submit([NewItem(MAIL, b"mine")])
    assert await one.lease(ANY, LEASE, 5) is not None
    assert await one.lease(ANY, LEASE, 0.01) is None
    await other.submit([NewItem(MAIL, b"heard of by nobody")])
    assert await one.lease(ANY, LEASE, 0.01) is None
    assert await one.lease(Demand({Cell("mail", 2): 1, Cell("sms", 2): 1}, frozenset(), 1), LEASE, 0.01) is not None


async def test_a_submission_takes_a_lease_that_waits_along_and_the_rest_stays(
    nodes: PostgresNodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a lease that waits for two of one function
    queue, said = await nodes.queue(), list[str]()
    read = queue.ground.read

    async def listens(statement: str, arguments: Sequence[object], about: str) -> list[tuple]:
        said.append(about)
        return await read(statement, arguments, about)

    monkeypatch.setattr(queue.ground, "read", listens)
    await queue.submit([NewItem(MAIL, b"", due=nodes.clock.wall() + 1000)])  # its kind is known
    two = Demand({Cell("mail", 2): 2}, frozenset(), 2)
    waits = asyncio.create_task(queue.lease(two, LEASE, 20.0))
    while not queue._poller.waiting:
        await asyncio.sleep(0.001)
    # When two are submitted
    said.clear()
    stored = await queue.submit([NewItem(MAIL, b"1", dedupe_key="a"), NewItem(MAIL, b"2")])
    leased = await waits
    # Then one statement did it, and they are out like any other
    assert said == ["a submission"]
    assert leased is not None and (leased.ids, leased.payloads) == ([each.id for each in stored], [b"1", b"2"])
    assert [status.state for status in await queue.status(leased.ids)] == [State.ENQUEUED] * 2
    assert await queue.settle(leased.fence, leased.ids, []) == []
    # And of more than it wants, or of what was there before, the rest waits for a look
    waits = asyncio.create_task(queue.lease(two, LEASE, 20.0))
    while not queue._poller.waiting:
        await asyncio.sleep(0.001)
    [first, _, _] = await queue.submit([NewItem(MAIL, b"", dedupe_key="a"), NewItem(MAIL, b"3"), NewItem(MAIL, b"4")])
    leased = await waits
    assert first == (stored[0].id, True)
    assert leased is not None and leased.payloads == [b"3", b"4"]
    assert (await queue.tally()).states["new"] == 1


async def test_what_is_stored_as_out_and_what_is_stored_and_claimed_are_handed_out_alike(nodes: PostgresNodes) -> None:
    # Given a queue that knows its kinds, and another node on the same server
    queue, other = await nodes.queue(), await nodes.queue()
    later = nodes.clock.wall() + 1000
    await queue.submit([NewItem(MAIL, b"", due=later), NewItem(Kind("mail", 2, "", "acme"), b"", due=later)])
    fences: list[int] = []

    async def brought(items: list[NewItem]) -> list[bytes]:
        """Submits items, and returns the payloads that a waiting lease is brought."""
        waits = asyncio.create_task(queue.lease(ANY, LEASE, 20.0))
        while not queue._poller.waiting:
            await asyncio.sleep(0.001)
        await queue.submit(items)
        leased = await waits
        assert leased is not None
        fences.append(leased.fence)
        assert [status.state for status in await queue.status(leased.ids)] == [State.ENQUEUED] * len(leased.ids)
        assert await queue.renew(leased.ids, leased.fence, LEASE, State.PROCESSING)
        assert await queue.settle(leased.fence, leased.ids, []) == []
        return leased.payloads

    # When plain items are submitted, of one tenant or of two; with more than a payload; and beside an older one that
    # another node stored a moment ago
    assert await brought([NewItem(MAIL, b"1", dedupe_key="k")]) == [b"1"]
    assert await brought([NewItem(MAIL, b"2"), NewItem(Kind("mail", 2, "", "acme"), b"3")]) == [b"2", b"3"]
    assert await brought([NewItem(MAIL, b"4", headers=(("a", "b"),))]) == [b"4"]
    await other.submit([NewItem(MAIL, b"5")])
    assert sorted(await brought([NewItem(MAIL, b"6")])) == [b"5", b"6"]  # stored in one millisecond, perhaps
    # Then each had a higher fence than the one before, and the counts are those of the rows
    assert fences == sorted(set(fences))
    tally = await queue.tally()
    assert {state: count for state, count in (await queue.counts()).items() if count} == {"new": 2, "success": 6}
    assert {state: count for state, count in tally.states.items() if count} == {"new": 2, "success": 6}
    assert tally.taken == 8
    assert await nodes.run("SELECT count(*) FROM S.claims") == [(0,)]


# Bounds.


async def test_what_is_past_its_retention_is_forgotten_whole(nodes: PostgresNodes) -> None:
    # Given items that ended, with a dedupe key and with attempts
    queue = await nodes.queue(retention=100.0, keep_ended=40)
    for round in range(6):
        await queue.submit([NewItem(MAIL, b"", dedupe_key=f"{round}-{n}") for n in range(20)])
        leased = await queue.lease(ANY, LEASE, 0)
        assert leased is not None
        back = [Settle(id, leased.fence, State.RETRIABLE_FAILURE, attempts=1, outcome="retry") for id in leased.ids]
        await queue.settle(leased.fence, [], back)
        leased = await queue.lease(ANY, LEASE, 0)
        assert leased is not None
        assert await queue.settle(leased.fence, leased.ids, []) == []
        while await queue.sweep():
            pass
    # Then no more than was configured is kept, and the books agree
    tally = await queue.tally()
    assert tally.states["success"] <= 40 + 20
    assert tally.taken - tally.forgotten == sum(tally.states.values())
    assert tally.states == await queue.counts()
    assert (await nodes.run("SELECT count(*) FROM S.dedupe")) == [(tally.states["success"],)]
    assert (await nodes.run("SELECT count(*) FROM S.tries")) == [(tally.states["success"],)]
    # And with time all of it goes, dedupe keys too
    for _ in range(12):
        nodes.clock.advance(60)
        while await queue.sweep():
            pass
    assert sum((await queue.counts()).values()) == 0
    [again] = await queue.submit([NewItem(MAIL, b"", dedupe_key="0-0")])
    assert not again.duplicate


async def test_no_verb_waits_for_the_servers_compiler(nodes: PostgresNodes) -> None:
    # Given the schema, then each function of it that has settings of its own has that one: the others are part of what
    # calls them
    await nodes.queue()
    compiled = await nodes.run(
        "SELECT p.proname FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace"
        f" WHERE n.nspname = '{nodes.schema}' AND p.proconfig IS NOT NULL AND p.prorettype <> 'trigger'::regtype"
        " AND NOT 'jit=off' = ANY (p.proconfig)"
    )
    assert compiled == []


# Servers.


async def test_on_another_server_nothing_is_leased_for_the_lease_of_a_source(nodes: PostgresNodes) -> None:
    queue = await nodes.queue()
    await queue.submit([NewItem(MAIL, b"")])
    first = await queue.lease(ANY, LEASE, 0)
    assert first is not None
    # When the tables stand elsewhere than those that handed it out
    await nodes.run("UPDATE S.home SET known = 'a server that is gone'")
    nodes.clock.advance(LEASE + 1)
    promoted = await nodes.queue()
    # Then nothing is leased until whoever has something cannot hold it any more; and a death meanwhile shortens nothing
    assert await promoted.lease(ANY, LEASE, 0) is None
    again = await nodes.queue()
    nodes.clock.advance(39)
    assert await again.lease(ANY, LEASE, 0) is None
    nodes.clock.advance(2)
    leased = await again.lease(ANY, LEASE, 0)
    assert leased is not None
    assert leased.fence > first.fence
    # And the next start does not wait
    nodes.clock.advance(LEASE + 1)
    assert await (await nodes.queue()).lease(ANY, LEASE, 0) is not None


async def test_a_failover_behind_connections_that_stay_is_seen_with_the_next_claim(nodes: PostgresNodes) -> None:
    # Given a node with a claim out, whose connections lead to the promoted server without breaking
    queue = await nodes.queue()
    await queue.submit([NewItem(MAIL, b""), NewItem(MAIL, b"")])
    first = await queue.lease(Demand({Cell("mail", 2): 1}, frozenset(), 1), LEASE, 0)
    assert first is not None
    timeline = "CREATE OR REPLACE FUNCTION S.this_timeline() RETURNS text LANGUAGE sql AS $$SELECT '0000BEEF'$$"
    await nodes.run(timeline)
    # Then nothing is leased from the first claim on, until whoever has something cannot hold it any more
    assert await queue.lease(ANY, LEASE, 0) is None
    nodes.clock.advance(39)
    assert await queue.lease(ANY, LEASE, 0) is None
    nodes.clock.advance(2)
    leased = await queue.lease(ANY, LEASE, 5)
    assert leased is not None
    assert len(leased.ids) == 2
    assert leased.fence > first.fence


async def test_what_the_first_connection_to_another_server_claims_is_given_to_nobody(nodes: PostgresNodes) -> None:
    # Given a node that waits for work while its server is replaced by one that was put back
    queue = await nodes.queue()
    [(id, _)] = await queue.submit([NewItem(MAIL, b"")])
    await nodes.run("UPDATE S.home SET known = 'a server that is gone'")
    await nodes.run(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
        f" AND query LIKE '%{nodes.schema}.%'"
    )
    # When its next calls dial anew, then it has nothing, and the item is as it was
    for _ in range(5):
        with contextlib.suppress(NotConnected):
            assert await queue.lease(ANY, LEASE, 0) is None
    [status] = await queue.status([id])
    assert status is not None
    assert (status.state, status.attempts) == (State.NEW, 0)
    nodes.clock.advance(41)
    assert await queue.lease(ANY, LEASE, 0) is not None


async def test_wrong_addresses_and_passwords_are_named_and_no_secret_is(nodes: PostgresNodes) -> None:
    address = nodes.url.rpartition("@")[2]
    for url, words in (
        (f"postgresql://tailrace:wrong@{address}", "user or the password"),
        (nodes.url.rpartition("/")[0] + "/nowhere", "no such database"),
        ("postgresql://u:hidden@127.0.0.1:1/x", "cannot be reached"),
    ):
        queue = await nodes.queue(url=url)  # starts all the same
        with pytest.raises(NotConnected, match=words) as told:
            await queue.lease(ANY, LEASE, 0)
        assert not any(secret in str(told.value) for secret in ("wrong", "hidden", "secret"))


async def test_a_server_that_dies_or_turns_read_only_loses_nothing_and_is_used_again(own_postgres) -> None:
    server = own_postgres()
    assert server.run("SHOW fsync") == [("on",)]
    nodes = PostgresNodes(server.address, "tailrace")
    queue = await nodes.queue(durability="durable")
    try:
        # Given what was acknowledged before the server was killed without warning
        ids = [each.id for n in range(20) for each in await queue.submit([NewItem(MAIL, b"%d" % n)])]
        first = await queue.lease(Demand({Cell("mail", 2): 5}, frozenset(), 5), LEASE, 0)
        assert first is not None
        server.program.kill()
        with pytest.raises(NotConnected):
            while True:  # its children may answer for a moment more; repeating it is harmless
                await queue.settle(first.fence, first.ids, [])
        # When it is back, then the same queue goes on by itself, under the same claim
        server.program.start()
        assert await queue.settle(first.fence, first.ids, []) == []
        second = await queue.lease(ANY, LEASE, 0)
        assert second is not None
        assert sorted(first.ids + second.ids) == sorted(ids)
        assert second.fence > first.fence
        # And while it takes no writes it says so, until it takes them again
        server.run("ALTER SYSTEM SET default_transaction_read_only = on")
        server.run("SELECT pg_reload_conf()")
        async with asyncio.timeout(20):
            while True:
                try:
                    await queue.submit([NewItem(MAIL, b"")])
                except NotConnected as error:
                    assert "read-only" in str(error)
                    break
        server.run("ALTER SYSTEM RESET default_transaction_read_only")
        server.run("SELECT pg_reload_conf()")
        async with asyncio.timeout(20):
            while True:
                try:
                    assert await queue.settle(second.fence, second.ids, []) == []
                    break
                except NotConnected:
                    await asyncio.sleep(0.01)
        # And one that would lose what it acknowledged is refused
        server.run("ALTER SYSTEM SET fsync = off")
        server.run("SELECT pg_reload_conf()")
        async with asyncio.timeout(20):
            while server.run("SHOW fsync") != [("off",)]:
                await asyncio.sleep(0.01)
        with pytest.raises(ConfigError, match="fsync"):
            await nodes.queue(durability="durable")
        # But the queue that is in use waits until that is mended
        await queue.ground.server.dial_anew()
        with pytest.raises(NotConnected, match="fsync"):
            await queue.submit([NewItem(MAIL, b"")])
        server.run("ALTER SYSTEM RESET fsync")
        server.run("SELECT pg_reload_conf()")
        async with asyncio.timeout(20):
            while server.run("SHOW fsync") != [("on",)]:
                await asyncio.sleep(0.01)
        assert await queue.submit([NewItem(MAIL, b"")])
    finally:
        await nodes.close()
