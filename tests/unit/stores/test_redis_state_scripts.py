"""The scripts of the state in Redis, run by fakeredis, with positions beyond what Lua counts exactly; the order of its
members; which servers are trusted."""

from __future__ import annotations

import contextlib

import pytest
from fakeredis import FakeAsyncRedis
from hypothesis import given
from hypothesis import strategies as st

from tailrace.model.drop import Cause, Drop
from tailrace.model.errors import ConfigError, NotConnected
from tailrace.model.ledger import LedgerEntry, LedgerPlace
from tailrace.stores.checkpoints.checkpoints import Ending, Mark
from tailrace.stores.checkpoints.redis import RedisCheckpoints
from tailrace.stores.drops.redis import RedisDrops
from tailrace.stores.ledger.redis import RedisLedger
from tailrace.stores.redis.sort_keys import BEFORE, EACH, LAST, MINUS, digits, packed, unpacked
from tailrace.stores.redis.trust import facts, refuse_unwritten, trusted
from tailrace.stores.state.redis_server import RedisStateOptions, StateServer

HIGH = (1 << 62) - 5
names = st.text(st.sampled_from("\0\1\2a/é\U0001f600"), max_size=4)


class Pretended(FakeAsyncRedis):
    """A client of fakeredis, which knows no flags of scripts."""

    async def execute_command(self, *command, **options):
        if command[0] == "EVAL":
            command = ("EVAL", command[1].removeprefix("#!lua").split("\n", 1)[-1], *command[2:])
        return await super().execute_command(*command, **options)


@pytest.fixture
async def server():
    made = StateServer(RedisStateOptions(), clients=lambda: (Pretended(), Pretended()))
    made.profile = "pretended"  # fakeredis has no INFO
    yield made
    await made.close()


@given(one=st.tuples(names, names), other=st.tuples(names, names))
def test_members_are_in_the_order_of_their_names_and_tell_them(one, other) -> None:
    assert (packed(*one) < packed(*other)) == (tuple(map(str.encode, one)) < tuple(map(str.encode, other)))
    assert unpacked(packed(*one) + b"rest", 2) == (list(one), b"rest")
    if one[0] != other[0]:
        low, high = packed(one[0]), packed(one[0]) + LAST
        assert not low <= packed(*other) < high


async def test_what_scripts_share_is_exact(server: StateServer) -> None:
    text = MINUS + BEFORE + EACH
    minus = text + "return string.format('%.0f', minus(ARGV[1], ARGV[2]))"
    for one, other in ((HIGH + 4, HIGH), (HIGH, HIGH + 4), (10**9, 10**9 - 1), (1 << 53, 0), (0, 0)):
        assert int(await server.call("EVAL", minus, 0, digits(one), digits(other))) == one - other
    before = text + "return before(ARGV[1], ARGV[2]) and 1 or 0"
    for one, other in ((b"a", b"b"), (b"B", b"a"), (b"a", b"a\0"), (b"a\0", b"a"), (b"", b""), (b"\xc3\xa9", b"z")):
        assert await server.call("EVAL", before, 0, one, other) == (one < other)
    each = text + "local all = {} for n = 1, 1501 do all[n] = n end return each(1, all, 'SADD', 'key')"
    assert await server.call("EVAL", each, 0) == 1501


async def test_endings_at_the_highest_positions_touch_and_grow_as_low_ones_do(server: StateServer) -> None:
    store = RedisCheckpoints(server)
    await store.open("s", 1)
    await store.commit("s", 1, {"0": Mark(HIGH, endings=(Ending(HIGH - 3, HIGH - 1, {3: 3}),))})
    more = (Ending(HIGH, HIGH, {3: 1}), Ending(HIGH + 1, HIGH + 1, {2: 1}), Ending(HIGH + 3, HIGH + 3, {2: 1}))
    await store.commit("s", 1, {"0": Mark(HIGH + 4, endings=more)})
    assert await store.endings("s", "0", 0, 1 << 62) == [Ending(HIGH - 3, HIGH, {3: 4}), *more[1:]]


async def test_drops_at_the_highest_positions_are_counted_once(server: StateServer) -> None:
    store = RedisDrops(server)
    for first, last in ((HIGH, HIGH + 1), (HIGH + 3, HIGH + 4), (HIGH + 1, HIGH + 2)):
        await store.add("s", "0", [Drop(first, last, last - first + 1, Cause.GATE, 1, "ann", "é", 0.1 + 0.2)], 0)
    assert await store.list("s", 9) == await store.list("", 9)
    assert [row.drop for row in await store.list("s", 9)] == [
        Drop(HIGH, HIGH + 4, 5, Cause.GATE, 1, "ann", "é", 0.1 + 0.2)
    ]


async def test_a_row_below_the_highest_checkpoint_goes_and_one_at_it_stays(server: StateServer) -> None:
    store = RedisLedger(server)
    await store.open("s", "0", 1)
    dead = [LedgerEntry(position, LedgerPlace.DEAD) for position in (HIGH, HIGH + 1)]
    assert await store.write("s", "0", [(None, each) for each in dead], 1) == dead
    assert await store.passed("s", "0", 1, HIGH + 1) == 1
    assert [row.entry for row in await store.list("s", 9)] == dead[1:]
    assert await store.waiting("s", "0", 0, 1 << 62) == 0


GOOD = {"redis_version": "7.0.15", "aof_enabled": "1", "maxmemory_policy": "noeviction"}
ALWAYS, SECOND = ({"appendfsync": value, "no-appendfsync-on-rewrite": "no"} for value in ("always", "everysec"))


@pytest.mark.parametrize(
    ("info", "config", "durability", "words"),
    [
        ({"redis_version": "6.2.1"}, ALWAYS, "durable", "7 or newer"),
        ({"maxmemory_policy": "allkeys-lru"}, ALWAYS, "relaxed", "CONFIG SET maxmemory-policy noeviction"),
        ({"aof_enabled": "0"}, ALWAYS, "relaxed", "appendonly yes"),
        ({}, SECOND, "durable", "CONFIG SET appendfsync always"),
        ({}, {**ALWAYS, "no-appendfsync-on-rewrite": "yes"}, "durable", "no-appendfsync-on-rewrite no"),
        ({}, {}, "durable", r"ACL SETUSER … \+config\|get"),
        ({}, {"appendfsync": "no"}, "relaxed", "CONFIG SET appendfsync everysec"),
    ],
)
def test_a_server_that_could_lose_more_is_refused_with_what_to_change(info, config, durability, words) -> None:
    with pytest.raises(ConfigError, match=words) as refusal:
        trusted("Redis at h:1", GOOD | info, config, durability)
    assert "Redis at h:1" in str(refusal.value)


REWRITING = GOOD | {"run_id": "a", "aof_rewrite_in_progress": "1"}


@pytest.mark.parametrize(
    ("info", "waits"),
    [
        (GOOD | {"run_id": "a", "aof_rewrite_in_progress": "0", "aof_base_size": "0"}, False),
        (REWRITING, True),
        (GOOD | {"aof_rewrite_scheduled": "1"}, True),
        (GOOD | {"aof_base_size": "0", "aof_last_bgrewrite_status": "err"}, True),
        (GOOD | {"aof_base_size": "88", "aof_last_bgrewrite_status": "err"}, False),
    ],
)
def test_a_file_that_is_written_anew_is_waited_for(info, waits: bool) -> None:
    with pytest.raises(NotConnected, match="append-only file") if waits else contextlib.nullcontext():
        refuse_unwritten("Redis at h:1", info)


def test_a_run_that_was_trusted_may_write_its_file_anew() -> None:
    refuse_unwritten("R", REWRITING, "a")
    with pytest.raises(NotConnected):
        refuse_unwritten("R", REWRITING, "b")


def test_what_may_be_lost_is_said() -> None:
    assert trusted("R", GOOD, ALWAYS, "durable").startswith("durable: ")
    assert "last second" in trusted("R", GOOD, SECOND, "relaxed")
    assert "last second" not in trusted("R", GOOD, ALWAYS, "relaxed")
    assert "does not say" in trusted("R", GOOD, {}, "relaxed")
    assert facts(b"# Server\r\nredis_version:7.0.15\r\n\r\n")["redis_version"] == "7.0.15"
