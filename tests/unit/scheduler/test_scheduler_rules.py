"""The small rules: limits, flows, gate, ranks, turns, placement, credit, leases."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tailrace.model.gate import Gate
from tailrace.model.lease import LeaseSizes, grant_to_worker, wait_for_worker
from tailrace.model.limits import Quota
from tailrace.model.workload import Extra, Kind
from tailrace.scheduler.rules.credit import cell_limit, session_total, steady, too_much
from tailrace.scheduler.rules.explain import SENTENCES, Reason
from tailrace.scheduler.rules.flow import Flow, Item, Room, expired
from tailrace.scheduler.rules.gate import Gates
from tailrace.scheduler.rules.leases import REMEMBERED, Granted, HeldFlights, Requests
from tailrace.scheduler.rules.limit import UNLIMITED, Limit
from tailrace.scheduler.rules.placement import PoolLimits, WorkerPool, place, room_of
from tailrace.scheduler.rules.ranks import MOST_OWED, Ranks, parts
from tailrace.scheduler.rules.turns import Turns, clamp_weight
from tailrace.tailers.rules.credit import Credit

SIZES = LeaseSizes()


def item(number: int, extra: Extra | None = None) -> Item:
    return (None, number, str(number), b"", Kind("f"), 1, 1, extra, None)


# ---- rate


@given(
    st.floats(0.1, 1000),
    st.floats(0, 100),
    st.lists(st.tuples(st.floats(0, 5), st.integers(0, 500)), max_size=40),
)
def test_a_bucket_never_gives_more_than_rate_times_time_and_burst(
    rate: float, burst: float, asks: list[tuple[float, int]]
) -> None:
    bucket, now = Limit("l", Quota("f", rate=rate, burst=burst), 0.0), 0.0
    starts: list[tuple[float, int]] = []
    for pause, wanted in asks:
        now += pause
        count = min(wanted, bucket.room(now))
        bucket.start(count)
        starts.append((now, count))
    for first, (begin, _) in enumerate(starts):
        for last in range(first, len(starts)):
            taken = sum(count for _, count in starts[first : last + 1])
            assert taken <= rate * (starts[last][0] - begin) + bucket.burst + 1e-6 * (1 + taken)


@given(st.floats(0.1, 1000), st.floats(0, 50))
def test_an_empty_bucket_names_when_its_next_token_comes(rate: float, burst: float) -> None:
    bucket = Limit("l", Quota("f", rate=rate, burst=burst), 0.0)
    bucket.start(bucket.room(0.0))
    at = bucket.next_at()
    assert at is not None
    assert bucket.room(at + 1e-6 * (1 + at)) >= 1
    other = Limit("l", Quota("f", rate=rate, burst=burst), 0.0)
    other.start(other.room(0.0))
    assert other.room(at - min(at, 0.01 / rate)) == 0 or at == 0


def test_a_smaller_burst_takes_effect_at_once() -> None:
    bucket = Limit("l", Quota("f", rate=10, burst=100), 0.0)
    bucket.change(Quota("f", rate=10, burst=5), 0.0, 2)
    assert bucket.room(0.0) == 5


# ---- flows


@given(st.lists(st.sampled_from(["put", "take", "back", "remove", "overflow"]), max_size=60), st.integers(1, 8))
def test_lanes_conserve_items_and_keep_their_order(events: list[str], bound: int) -> None:
    lane, made = Room(), 0
    expected: list[int] = []
    for event in events:
        if event == "put":
            lane.items.append(item(made))
            expected.append(made)
            made += 1
        elif event == "take":
            assert [each[1] for each in lane.take(2)] == expected[:2]
            expected = expected[2:]
        elif event == "back":
            lane.put_back(lane.take(3))
        elif event == "remove":
            gone = lane.remove(lambda each: each[1] % 3 == 0)
            assert [each[1] for each in gone] == [number for number in expected if number % 3 == 0]
            expected = [number for number in expected if number % 3]
        else:
            over = {each[1] for each in lane.overflow(bound)}
            assert over == set(expected[bound:])
            expected = expected[:bound]
        assert [each[1] for each in lane.items] == expected


def test_an_item_expires_at_its_time_and_not_without_one() -> None:
    assert expired(item(1, Extra(expires_at=5.0)), 5.0)
    assert not expired(item(1, Extra(expires_at=5.0)), 4.9)
    assert not expired(item(1, Extra()), 5.0)
    assert not expired(item(1), 5.0)


# ---- gate


def test_the_more_specific_gate_decides() -> None:
    gates = Gates([Gate("f", "", "pause"), Gate("f", "news", "drop"), Gate("g", "x", "resume")])
    found = [gates.of(kind) for kind in (Kind("f"), Kind("f", 0, "news"), Kind("g", 0, "x"), Kind("h"))]
    assert [gate and gate.action for gate in found] == ["pause", "drop", None, None]
    assert {(closed.function, closed.collection, closed.drop) for closed in gates.closed} == {
        ("f", "", False),
        ("f", "news", True),
    }


def test_a_closed_gate_says_who_and_why() -> None:
    (closed,) = Gates([Gate("send", "news", "pause", "ann", "outage")]).closed
    assert closed.reason == "collection 'news' of send is paused by ann: outage"


def test_between_gates_of_which_neither_is_more_specific_pause_goes_before_drop() -> None:
    # Given a dropped function, a paused tenant, a paused downstream that another function calls, and a dropped source
    stripe = {"pay": ("stripe",), "refund": ("stripe", "bank")}
    gates = Gates(
        [
            Gate("f", "", "drop"),
            Gate("", "", "pause", tenant="a"),
            Gate("", "", "pause", downstream="stripe"),
            Gate("", "", "drop", downstream="stripe", tenant="b"),
            Gate("", "", "drop", source="orders"),
        ],
        stripe,
        lambda function: stripe.get(function, ()),
    )

    def decides(kind: Kind, source: str = "") -> tuple[str, str] | None:
        gate = gates.of(kind, source)
        return None if gate is None else (gate.what, gate.action)

    # Then each kind meets the one that is nearest, and of equals the one that keeps it
    assert decides(Kind("f")) == ("f", "drop")
    assert decides(Kind("f", tenant="a")) == ("tenant a", "pause")
    assert decides(Kind("pay")) == ("downstream stripe", "pause")
    assert decides(Kind("pay", tenant="b")) == ("tenant b × downstream stripe", "drop")
    assert decides(Kind("other")) is None
    assert decides(Kind("other"), "orders") == ("source orders", "drop")
    assert decides(Kind("other", tenant="a"), "orders") == ("tenant a", "pause")
    # And what is closed to every session names each function that calls the downstream, and no source
    assert {(each.function, each.tenant, each.drop) for each in gates.closed} == {
        ("f", "", True),
        ("", "a", False),
        ("pay", "", False),
        ("refund", "", False),
        ("pay", "b", True),
        ("refund", "b", True),
    }


@given(
    st.lists(
        st.builds(
            Gate,
            st.sampled_from(["", "f", "g"]),
            st.sampled_from(["", "c"]),
            st.sampled_from(["pause", "drop"]),
            tenant=st.sampled_from(["", "a"]),
            downstream=st.sampled_from(["", "d"]),
            source=st.sampled_from(["", "s"]),
        ).filter(lambda gate: not gate.fault()),
        max_size=8,
        unique_by=lambda gate: gate.key,
    ),
    st.builds(Kind, st.sampled_from(["f", "g"]), st.just(0), st.sampled_from(["", "c"]), st.sampled_from(["", "a"])),
    st.sampled_from(["", "s"]),
)
def test_the_gate_that_decides_is_the_one_that_a_slow_reading_finds(gates: list[Gate], kind: Kind, source: str) -> None:
    calls = {"f": ("d",)}
    facts = {kind.function, f"c:{kind.collection}", f"t:{kind.tenant}", f"s:{source}"}
    facts |= {f"d:{name}" for name in calls.get(kind.function, ())}

    def names(gate: Gate) -> set[str]:
        named = [
            gate.function,
            *(f"{letter}:{name}" if name else "" for letter, name in zip("ctds", gate.key[1:], strict=True)),
        ]
        return set(named) - {""}

    standing = [gate for gate in gates if names(gate) <= facts]
    nearest = [gate for gate in standing if not any(names(gate) < names(other) for other in standing)]
    made = Gates(gates, calls, lambda function: calls.get(function, ()))
    found = made.of(kind, source)
    assert (found is None) == (not nearest)
    if source not in made.sources:  # its tailer pushes nothing that would come back held
        credit = Credit()
        credit.close(made.closed)
        paused = found is not None and found.action == "pause"
        assert credit.is_closed(kind) or not paused
        assert paused or found is not None or not credit.is_closed(kind)
    if found is not None:
        assert found in nearest
        assert found.action == ("pause" if any(gate.action == "pause" for gate in nearest) else "drop")


# ---- ranks


@given(st.lists(st.integers(0, 3), min_size=1, max_size=4, unique=True), st.integers(1, 16), st.floats(0, 0.5))
def test_what_lower_ranks_are_owed_stays_in_bounds(ranks: list[int], count: int, share: float) -> None:
    waiting, owed = sorted(ranks), Ranks(4)
    for _ in range(200):
        rank, bound = owed.next(waiting)
        assert rank in waiting and (bound == 0) == (rank == waiting[0])
        owed.started(rank, min(count, bound or count), waiting, share)
        assert all(0 <= each <= MOST_OWED for each in owed.owed)


@given(st.integers(1, 16))
def test_all_lower_ranks_together_get_their_part_and_each_of_them_something(chunk: int) -> None:
    owed, started = Ranks(4), Counter[int]()
    while sum(started.values()) < 20_000:
        rank, bound = owed.next([0, 1, 2, 3])
        count = min(chunk, bound or chunk)
        owed.started(rank, count, [0, 1, 2, 3], 0.05)
        started[rank] += count
    whole = sum(started.values())
    assert abs((whole - started[0]) / whole - 0.05) < 0.01
    assert started[1] > started[2] > 0 and started[3] > 0


def test_priority_is_strict_otherwise() -> None:
    owed = Ranks(4)
    for _ in range(50):
        assert owed.next([1, 3]) == (1, 0)
        owed.started(1, 10, [1, 3], 0.0)
    assert parts(0) == [] and parts(1) == [1.0] and all(abs(sum(parts(lower)) - 1) < 1e-9 for lower in (1, 2, 3, 9))


# ---- turns


class Owner:
    """A function, as turns see it."""

    def __init__(self, weight: float = 1.0) -> None:
        self.weight = weight
        self.levels = 4


def flow_of(owner: Owner, tenant: str = "", rank: int = 0, weight: float = 1.0) -> Flow:
    flow = Flow(owner, Kind("f", rank, "", tenant))
    flow.weight = weight
    return flow


def served(turns: Turns, rounds: int, cost: dict[Flow, float] | None = None) -> Counter[Flow]:
    """What each flow got, in items, when all of them always have more."""
    counts = Counter[Flow]()
    for _ in range(rounds):
        node, flow, bound = turns.next()
        assert bound >= 0
        turns.took(node, flow, 1, (cost or {}).get(flow, 0.01), 0.0)
        counts[flow] += 1
        turns.add(flow, 0.0)
    return counts


@given(st.lists(st.sampled_from([0.5, 1.0, 2.0, 4.0]), min_size=2, max_size=8))
def test_functions_share_by_weight(weights: list[float]) -> None:
    turns = Turns(0.05)
    flows = [flow_of(Owner(weight)) for weight in weights]
    for flow in flows:
        turns.add(flow, 0.0)
    counts = served(turns, 2000)
    shares = [counts[flow] / weight for flow, weight in zip(flows, weights, strict=True)]
    assert max(shares) - min(shares) <= 2 / min(weights)


def test_tenants_share_by_weight_and_cost_within_a_function() -> None:
    turns, owner = Turns(0.05), Owner()
    light, heavy, slow = flow_of(owner, "a"), flow_of(owner, "b", weight=3.0), flow_of(owner, "c")
    for flow in (light, heavy, slow):
        turns.add(flow, 0.0)
    counts = served(turns, 2000, {slow: 0.04})
    assert abs(counts[heavy] / counts[light] - 3) < 0.1 and abs(counts[light] / counts[slow] - 4) < 0.2


def test_a_tenant_with_ten_collections_has_one_tenants_turns() -> None:
    turns, owner = Turns(0.05), Owner()
    many = [Flow(owner, Kind("f", 0, f"c{number}", "many")) for number in range(10)]
    one = flow_of(owner, "one")
    for flow in (*many, one):
        turns.add(flow, 0.0)
    counts = served(turns, 2000)
    assert abs(sum(counts[flow] for flow in many) - counts[one]) <= 12


def test_who_pauses_saves_nothing_up_and_stays_in_debt_for_a_while() -> None:
    turns = Turns(0.05)
    idle, busy = flow_of(Owner()), flow_of(Owner())
    turns.add(busy, 0.0)
    served(turns, 500)
    turns.add(idle, 0.0)
    counts = served(turns, 100)
    assert abs(counts[idle] - counts[busy]) <= 2


def test_a_dropped_function_leaves_nothing() -> None:
    turns, owner = Turns(0.05), Owner()
    gone, stays = flow_of(owner, "a"), flow_of(Owner(), "a")
    turns.add(gone, 0.0)
    turns.add(stays, 0.0)
    turns.drop(owner)
    assert turns.size == 1 and turns.next()[1] is stays


def test_weights_are_bounded_and_zero_means_one() -> None:
    assert [clamp_weight(weight) for weight in (0, 1e-9, 1e9, 2)] == [1.0, 0.01, 100.0, 2]


# ---- placement


def pool_of(name: str, limit: int) -> WorkerPool:
    pool = WorkerPool(None, name)
    pool.announced(PoolLimits(name, (), limit, limit))
    return pool


@given(st.lists(st.tuples(st.integers(1, 50), st.integers(0, 60), st.booleans()), min_size=1, max_size=6), st.data())
def test_placement_keeps_limits_and_places_everything(states: list[tuple[int, int, bool]], data: Any) -> None:
    pools = []
    for limit, assigned, shut in states:
        pool = pool_of("p", limit)
        pool.assigned, pool.shut = assigned, shut
        pools.append(pool)
    count = data.draw(st.integers(0, room_of(pools)))
    placed = place(pools, count) if count else []
    assert sum(number for _, number in placed) == count
    for pool, number in placed:
        assert 0 < number <= pool.room


def test_the_least_loaded_gets_more() -> None:
    busy, idle = pool_of("busy", 10), pool_of("idle", 10)
    busy.assigned = 6
    placed = {pool.name: number for pool, number in place([busy, idle], 6)}
    assert placed["idle"] > placed.get("busy", 0)


# ---- limit


def test_a_limit_has_room_up_to_its_concurrency() -> None:
    limit = Limit("l", Quota("f", 3), 0.0)
    limit.found(1)
    limit.start(2)
    assert limit.room(0.0) == 0 and limit.next_at() is None
    limit.end(1)
    assert limit.room(0.0) == 1
    limit.change(Quota("f", 1), 0.0, 2)
    assert limit.room(0.0) < 0
    limit.change(Quota("f", rate=5.0), 0.0, 3)
    assert limit.room(0.0) == 5 and limit.concurrency == UNLIMITED


# ---- credit


@given(
    st.integers(0, 10**6),
    st.integers(64, 10**5),
    st.integers(64, 10**5),
    st.integers(1, 64),
    st.integers(0, 1000),
    st.floats(0, 1e5),
)
def test_credit_stays_within_its_bounds(
    capacity: int, bound: int, lane: int, sessions: int, concurrency: int, rate: float
) -> None:
    total = session_total(capacity, bound)
    assert 64 <= total <= max(64, bound)
    limit = cell_limit(capacity, total, lane, sessions, Quota("f", concurrency, rate))
    assert (limit == 0) == (capacity == 0)
    assert limit <= total // 2
    assert limit * sessions <= lane
    if capacity and 2 * capacity <= bound:
        assert 2 * capacity <= total <= max(64, 4 * capacity)


def test_a_limited_function_gets_little_credit() -> None:
    plain = cell_limit(1000, 4000, 20_000, 1, None)
    assert cell_limit(1000, 4000, 20_000, 1, Quota("f", concurrency=10)) == 40 < plain
    assert cell_limit(1000, 4000, 20_000, 1, Quota("f", rate=100.0)) == 200 < plain
    assert cell_limit(1000, 4000, 20_000, 1, Quota("f", concurrency=1)) == 16
    assert steady(1000) == 1024 and steady(0) == 0
    assert too_much(129, 64) and not too_much(128, 64)


# ---- leases


def test_a_grant_counts_from_when_its_request_was_sent() -> None:
    requests = Requests(10.0)
    first = requests.send(15.0)
    assert [requests.sent_at(number) for number in (0, first, first + 1)] == [10.0, 15.0, None]
    for _ in range(REMEMBERED):
        requests.send(20.0)
    assert requests.sent_at(first) is None


def test_flights_are_renewed_when_listed_and_forgotten_when_not() -> None:
    held = HeldFlights()
    assert held.add(1, 10.0, 3) and held.add(2, 10.0, 2)
    assert not held.add(2, 10.0, 1)
    assert held.renew(20.0, [2]) == [1]
    assert (held.until(), held.ends(), held.items) == (20.0, 20.0, 2)
    assert not held.end(1, 1)
    assert held.end(2, 2) and held.items == 0 and not held.flights


def test_a_lapsed_flight_is_never_resumed() -> None:
    held = HeldFlights()
    held.add(1, 10.0, 1)
    assert held.lapse(10.0) == [1] and held.lapse(11.0) == []
    held.renew(30.0, [1])
    assert held.until() == 0.0 and held.until([1]) == 0.0


def test_a_shorter_grant_does_not_shorten_what_was_granted() -> None:
    held = HeldFlights()
    held.add(1, 10.0, 1)
    held.renew(5.0, [1])
    assert held.until() == 10.0


@given(
    st.lists(
        st.one_of(st.tuples(st.just("ask"), st.floats(0, 20)), st.tuples(st.just("grant"), st.floats(0, 60))),
        max_size=30,
    )
)
def test_what_a_worker_was_granted_ends_before_we_call_it_lost_and_before_we_lose_it(
    events: list[tuple[str, float]],
) -> None:
    granted, now, number = Granted(0.0), 0.0, 0
    for event, value in events:
        if event == "ask":
            now += value
            number += 1
            granted.requested(number, now)
        else:
            until = now + value
            lease = granted.grant(SIZES, until)
            assert lease <= grant_to_worker(SIZES, 1e9)
            if lease > 0:
                slowest = now + lease * SIZES.drift + SIZES.kill_margin
                assert slowest <= until + 1e-9
                assert granted.over >= now + wait_for_worker(SIZES, lease) - 1e-9


def test_after_a_second_hello_nothing_is_granted_until_a_request_was_seen() -> None:
    granted = Granted(0.0)
    assert granted.grant(SIZES, 30.0) > 0
    granted.reconnected()
    assert granted.grant(SIZES, 30.0) == 0 and not granted.fresh(SIZES, 0.0)
    granted.requested(1, 2.0)
    granted.reconnected()
    assert granted.grant(SIZES, 30.0) > 0 and granted.fresh(SIZES, 2.0)
    assert not granted.fresh(SIZES, 2.0 + 2 * SIZES.heartbeat + SIZES.round_trip)


# ---- explain


def test_every_reason_has_one_sentence() -> None:
    assert set(SENTENCES) == set(Reason)
    assert max(Counter(SENTENCES.values()).values()) == 1
