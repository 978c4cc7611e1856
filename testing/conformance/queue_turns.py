"""Laws of turns among tenants (FL19): one tenant's waiting items, however many, delay nobody else's next item."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from ...model.claim import Settle, State
from ...model.demand import Closed
from ...model.workload import Kind
from ...stores.queue.queue import NewItem
from .calls import calls_of
from .queue_engine import LEASE, MAIL, REPORT, QueueEngine, nothing, put, take, wanting

#: Tenants that share a claim of a lane (TENANTS of the engines).
TOGETHER = 16
#: Value of `behind` for an engine that takes turns only behind a flood.
DEPTH = 256
FLOOD = MAIL._replace(tenant="flood")
OTHER = MAIL._replace(tenant="other")


async def flood(engine: QueueEngine, count: int, due: float = 0.0) -> None:
    """Submits `count` items of one tenant."""
    for first in range(0, count, 1000):
        await put(engine, *(NewItem(FLOOD, b"flood", due) for _ in range(min(1000, count - first))))


class TurnLaws:
    """Turns of tenants within a function, priority and collection. `behind`: items of others, for a few tenants, behind
    which one takes turns; 0: it always does."""

    behind = 0

    async def _behind(self, engine: QueueEngine, count: int) -> None:
        # Given very many items of one tenant, of which some were claimed
        await flood(engine, count)
        await take(engine, wanting(total=TOGETHER))
        # When another one comes
        await put(engine, NewItem(OTHER, b"other"))
        # Then the next claim has it, beside some of the many
        found = Counter((await take(engine, wanting(total=TOGETHER))).payloads)
        assert found == {b"other": 1, b"flood": TOGETHER - 1}

    async def test_a_flood_of_one_tenant_delays_nobody_elses_next_item(self, engine: QueueEngine) -> None:
        await self._behind(engine, 20_000)

    @pytest.mark.long(minutes=0.15)
    @pytest.mark.timeout(900)
    async def test_a_flood_of_a_million_delays_nobody_elses_next_item(self, engine: QueueEngine) -> None:
        await self._behind(engine, 1_000_000)

    async def test_an_item_at_a_time_tenants_take_turns(self, engine: QueueEngine) -> None:
        await flood(engine, self.behind + 50)
        await put(engine, NewItem(OTHER, b"other"), NewItem(MAIL, b"none"))
        seen = [(await take(engine, wanting(total=1))).payloads[0] for _ in range(3)]
        assert sorted(seen) == [b"flood", b"none", b"other"]

    async def test_each_of_many_tenants_comes_within_so_many_claims(self, engine: QueueEngine) -> None:
        # Given many tenants that have much waiting
        tenants = [MAIL._replace(tenant=f"t{number:03}") for number in range(100)]
        for kind in tenants:
            await put(engine, *(NewItem(kind, b"") for _ in range(30)))
        # When as many are claimed as ⌈tenants / 16⌉ claims of 16 have
        claims = -(-len(tenants) // TOGETHER)
        seen = Counter[Kind]()
        for _ in range(claims):
            seen.update((await take(engine, wanting(total=TOGETHER))).kinds)
        # Then each has had a turn, and none a second one before all others had one
        assert set(seen) == set(tenants)
        assert max(seen.values()) <= 2
        assert sum(seen.values()) == claims * TOGETHER

    async def test_a_claim_is_full_also_where_each_tenant_has_little(self, engine: QueueEngine) -> None:
        await put(engine, *(NewItem(MAIL._replace(tenant=f"t{number}"), b"") for number in range(100)))
        await engine.pass_time(0.1)
        assert len((await take(engine, wanting(total=90))).ids) == 90
        assert len((await take(engine, wanting(total=90))).ids) == 10

    async def test_the_order_of_a_tenant_is_that_of_due_times(self, engine: QueueEngine) -> None:
        # Given items of two tenants that become due one after the other, some of them stored late
        now = engine.now()
        kinds = [FLOOD, OTHER]
        await put(engine, *(NewItem(kind, b"%02d" % due, now + due) for due in (30, 10, 20) for kind in kinds))
        await engine.pass_time(40)
        await put(engine, *(NewItem(kind, b"%02d" % due, now + due) for due in (35, 5) for kind in kinds))
        # When they are claimed a few at a time
        seen: dict[str, list[bytes]] = {"flood": [], "other": []}
        for _ in range(5):
            leased = await take(engine, wanting(total=2))
            for kind, payload in zip(leased.kinds, leased.payloads, strict=True):
                seen[kind.tenant].append(payload)
        # Then each tenant's come in the order of their times
        assert all(each == [b"05", b"10", b"20", b"30", b"35"] for each in seen.values())

    async def test_what_becomes_due_and_what_comes_back_takes_turns_too(self, engine: QueueEngine) -> None:
        # Given many delayed items of one tenant, and many that it hands back
        await flood(engine, 500, due=engine.now() + 10)
        await flood(engine, 500)
        await put(engine, NewItem(OTHER, b"other", engine.now() + 11))
        leased = await take(engine, wanting(total=500))
        back = [Settle(id, leased.fence, State.RETRIABLE_FAILURE, 2.0, 1) for id in leased.ids[:250]]
        back += [Settle(id, leased.fence, State.NEW) for id in leased.ids[250:]]
        await engine.queue.settle(leased.fence, [], back)
        # When all of them, and another tenant's, are due
        await engine.pass_time(12)
        # Then one of the next claims has the other's
        claims = [
            (await take(engine, wanting(total=TOGETHER))).payloads for _ in range(max(1, self.behind // TOGETHER))
        ]
        assert any(b"other" in each for each in claims)

    async def test_leases_that_ended_take_turns_too(self, engine: QueueEngine) -> None:
        await flood(engine, 300)
        await take(engine, wanting(total=300), seconds=1.0)
        await put(engine, NewItem(OTHER, b"other"))
        await take(engine, wanting(total=1), seconds=1.0)
        await engine.pass_time(2)
        assert b"other" in (await take(engine, wanting(total=TOGETHER))).payloads

    async def test_a_cancelled_item_takes_no_turn(self, engine: QueueEngine) -> None:
        ids = await put(engine, *(NewItem(MAIL._replace(tenant=f"t{number}"), b"") for number in range(40)))
        await put(engine, NewItem(OTHER, b"other"))
        await engine.queue.cancel(ids)
        assert (await take(engine, wanting(total=TOGETHER))).payloads == [b"other"]
        assert await nothing(engine)

    async def test_turns_go_on_after_a_reopening(self, engine: QueueEngine) -> None:
        await flood(engine, self.behind + 100)
        await put(engine, *(NewItem(OTHER, b"other") for _ in range(2)))
        assert b"other" in (await take(engine, wanting(total=2))).payloads
        await engine.reopen()
        found = [(await take(engine, wanting(total=1))).payloads[0] for _ in range(2)]
        assert sorted(found) == [b"flood", b"other"]

    async def test_what_is_closed_costs_a_claim_nothing(self, engine: QueueEngine) -> None:
        async def one() -> None:
            await put(engine, NewItem(OTHER, b"other"))
            leased = await take(engine, demand)
            assert leased.payloads == [b"other"]
            assert await engine.queue.settle(leased.fence, leased.ids, []) == []

        # Given what it takes to submit, claim and settle one item while many tenants are closed that have an item each
        closed = [MAIL._replace(tenant=f"t{number:03}") for number in range(200)]
        demand = wanting(closed=[Closed(MAIL.function, tenant=kind.tenant) for kind in closed])
        await put(engine, *(NewItem(kind, b"closed") for kind in closed))
        await one()
        before = await calls_of(one)
        # When those have much more waiting before it
        await put(engine, *(NewItem(kind, b"closed") for kind in closed * 10))
        assert await nothing(engine, demand)
        # Then it takes as much
        after = await calls_of(one)
        assert after <= 1.1 * before + 20, f"{before} calls before, {after} after"
        # And they take turns once they are open
        assert len(set((await take(engine, wanting(total=TOGETHER))).kinds)) == TOGETHER

    async def test_a_closed_tenant_keeps_the_quick_way_open_for_others(self, engine: QueueEngine) -> None:
        await put(engine, *(NewItem(FLOOD, b"flood") for _ in range(50)), NewItem(REPORT, b""))
        demand = wanting(closed=[Closed(MAIL.function, tenant="flood")])
        assert (await take(engine, demand)).kinds == [REPORT]
        for _ in range(3):
            await put(engine, NewItem(OTHER, b"other"), NewItem(FLOOD, b"flood"))
            assert (await take(engine, demand)).payloads == [b"other"]
        assert await nothing(engine, demand)
        assert len((await take(engine)).ids) == 53

    @pytest.mark.parametrize("seed", range(4))
    async def test_whatever_happens_each_due_tenant_comes_within_so_many_claims(
        self, engine: QueueEngine, seed: int
    ) -> None:
        # Given forty tenants, of which some have much, some little, and some nothing
        dice = Random(seed)
        world = TenantsAtClaims([MAIL._replace(tenant=f"t{number:02}") for number in range(40)], self.behind)
        # When work comes, is claimed beside closed tenants, succeeds or comes back, and time passes
        for _ in range(50):
            match dice.choice(("submit", "submit", "claim", "claim", "claim", "time")):
                case "submit":
                    kinds = dice.choices(world.kinds, k=dice.randint(1, 30))
                    much = kinds[:1] * dice.choice((0, 200))
                    due = engine.now() + dice.choice((0.0, 0.0, 3.0))
                    ids = await put(engine, *(NewItem(kind, b"", due) for kind in kinds + much))
                    world.waits(dict(zip(ids, kinds + much, strict=True)), due)
                case "claim":
                    closed = frozenset(dice.sample(world.kinds, dice.choice((0, 0, 10, 30))))
                    gates = [Closed(MAIL.function, tenant=kind.tenant) for kind in closed]
                    total = dice.randint(TOGETHER, 3 * TOGETHER)
                    leased = await engine.queue.lease(wanting(total=total, closed=gates), LEASE, 0)
                    ids = [] if leased is None else leased.ids
                    # Then nobody who has something due waits longer than its turn (checked with every claim)
                    world.claimed(ids, closed, engine.now())
                    if leased is None:
                        continue
                    back = [id for id in leased.ids if dice.random() < 0.2]
                    delay = dice.choice((0.0, 2.0))
                    others = [Settle(id, leased.fence, State.RETRIABLE_FAILURE, delay, 1) for id in back]
                    await engine.queue.settle(leased.fence, [id for id in ids if id not in back], others)
                    world.comes_back(back, engine.now() + delay)
                case "time":
                    await engine.pass_time(1.0)


class TenantsAtClaims:
    """Tenants of a queue: their waiting items, and how many claims passed by each one that had something due and was
    open."""

    def __init__(self, kinds: list[Kind], behind: int) -> None:
        self.kinds = kinds
        self._behind = behind
        self._kind_of: dict[str, Kind] = {}
        self._due: dict[str, float] = {}
        self._passed = Counter[Kind]()
        self._items = Counter[Kind]()  # claimed meanwhile

    def waits(self, items: dict[str, Kind], due: float) -> None:
        """Records items that were stored."""
        self._kind_of.update(items)
        self._due.update(dict.fromkeys(items, due))

    def comes_back(self, ids: list[str], due: float) -> None:
        """Records items that wait again."""
        self._due.update(dict.fromkeys(ids, due))

    def claimed(self, ids: list[str], closed: frozenset[Kind], now: float) -> None:
        """Records the items of a claim. Raises AssertionError when a tenant's turn is overdue."""
        due = {self._kind_of[id] for id, at in self._due.items() if at <= now} - closed
        served = {self._kind_of[id] for id in ids}
        assert served <= due
        for id in ids:
            assert self._due.pop(id) <= now
        for kind in self.kinds:
            self._passed[kind] = self._passed[kind] + 1 if kind in due - served else 0
            self._items[kind] = self._items[kind] + len(ids) if kind in due - served else 0
        # By then it was seen that it is behind a flood, where turns begin with that.
        behind = 2 * max(self._behind, TOGETHER * len(self.kinds)) if self._behind else -1
        claims = -(-len(self.kinds) // TOGETHER)
        late = {kind.tenant for kind, count in self._passed.items() if count >= claims and self._items[kind] > behind}
        assert not late, f"{sorted(late)} had something due in more claims than tenants need"
