"""The queue against a model of it: Hypothesis takes steps that nobody thought of and compares after each.

The model is a dictionary of items. Where the protocol leaves an engine the choice (a lease whose time is over may be
ended at once or when somebody looks), the model asks the engine and only holds it to its answer.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from ...model.claim import Settle, State
from ...model.demand import Cell, Closed, Demand
from ...model.one_item import BEHIND, CHANGED, ENDED, OUT
from ...model.workload import Kind
from ...stores.queue.items import NOW
from ...stores.queue.lifecycle import LEASED, TERMINAL, WAITING, next_trigger
from ...stores.queue.queue import NewItem, Reschedule
from .queue_callbacks import CALLBACK, TOLD
from .queue_engine import QueueEngine

LEASE = 10.0
#: Seconds for which an engine may leave a lease that is over: as long as it may not have read what it was told.
OVERDUE = 5.0
KINDS = [Kind("f", 1), Kind("f", 1, "c"), Kind("f", 1, "c", "t"), Kind("f", 2, "", "t"), Kind("g", 1, "", "t")]
GATES = [
    Closed("f"),
    Closed("f", "c"),
    Closed("f", "", "t"),
    Closed("g", "", "t"),
    Closed("f", priority=2),
    Closed("f", "", "t", priority=2),
    Closed("f", exact=True),
    Closed("f", "", "t", priority=1, exact=True),
    Closed("f", exact=True, all_collections=True),
    Closed("f", exact=True, all_tenants=True),
]
SETTLED = sorted(WAITING | TERMINAL)


@dataclass
class ModelItem:
    """An item, as the model knows it. `until` is its lease's end; `settled` how its newest hand-out was settled;
    `first`: it goes before items that wait, so that it may say that it was due earlier; `tells`: its end is to be told,
    and was if `heard`."""

    kind: Kind
    key: str
    payload: bytes
    due: float
    state: State = State.NEW
    fence: int = 0
    until: float = 0.0
    attempts: int = 0
    cancel: bool = False
    settled: State | None = None
    first: bool = False
    tells: bool = False
    heard: bool = False


class QueueModel(RuleBasedStateMachine):
    """Random steps on a queue and on the model. An engine's test derives from it, makes and disposes of an open and
    empty engine, and says whether it `tells` ends."""

    tells = True

    async def make_engine(self) -> QueueEngine:
        raise NotImplementedError

    async def dispose(self, engine: QueueEngine) -> None:
        raise NotImplementedError

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.engine = self.do(self.make_engine())
        self.items: dict[str, ModelItem] = {}
        self.order: list[str] = []
        self.fences: list[int] = [1]

    def do(self, work: Any) -> Any:
        return self.runner.run(work)

    def teardown(self) -> None:
        self.do(self.dispose(self.engine))
        self.runner.close()

    @initialize()
    def start(self) -> None:
        assert sum(self.do(self.engine.queue.counts()).values()) == 0

    # What the model derives.

    def over(self, item: ModelItem) -> bool:
        """Whether the item's lease has run out, so that anybody may claim it."""
        return item.state in LEASED and item.until <= self.engine.now()

    def blocked(self, id: str) -> bool:
        """Whether an older live item of the same tenant has the same key."""
        key, tenant = self.items[id].key, self.items[id].kind.tenant
        older = [self.items[each] for each in self.order[: self.order.index(id)]]
        return bool(key) and any(
            (each.key, each.kind.tenant) == (key, tenant) and each.state not in TERMINAL for each in older
        )

    def eligible(self, demand: Demand) -> set[str]:
        now = self.engine.now()
        return {
            id
            for id, item in self.items.items()
            if item.state in WAITING
            and item.due <= now
            and Cell(item.kind.function, item.kind.priority) in demand.cells
            and not any(gate.covers(item.kind) for gate in demand.closed)
            and not self.blocked(id)
        }

    def leases_ended(self, taken: Collection[str] = ()) -> None:
        """Ends the leases that have run out, as an engine does when somebody looks. One that ran out this moment may
        still stand, unless its item was taken anew: a renewal that was sent in time may not have been written yet."""
        over = [id for id, item in self.items.items() if self.over(item)]
        for id, status in zip(over, self.do(self.engine.queue.status(over)) if over else (), strict=True):
            item = self.items[id]
            assert status is not None
            if id in taken or status.state not in LEASED:
                item.state = State.RETRIABLE_FAILURE if item.attempts else State.NEW
                item.due, item.until, item.settled, item.first = self.engine.now(), 0.0, None, True
                item.fence += 1
                if item.cancel:
                    item.state = State.CANCELLED
            else:
                assert self.engine.now() - item.until < OVERDUE

    # Steps.

    @rule(
        kinds=st.lists(st.sampled_from(KINDS), min_size=1, max_size=5),
        delay=st.sampled_from([0.0, 0.0, 3.0, 15.0]),
        key=st.sampled_from(["", "", "k", "l"]),
        tells=st.booleans(),
    )
    def submit(self, kinds: list[Kind], delay: float, key: str, tells: bool) -> None:
        due, done = self.engine.now() + delay, CALLBACK if tells and self.tells else None
        items = [
            NewItem(kind, f"{len(self.order) + i}".encode(), due=due, key=key, on_done=done)
            for i, kind in enumerate(kinds)
        ]
        for item, answer in zip(items, self.do(self.engine.queue.submit(items)), strict=True):
            assert not answer.duplicate
            assert answer.id not in self.items
            self.items[answer.id] = ModelItem(item.kind, key, item.payload, due, tells=done is not None)
            self.order.append(answer.id)

    @rule(
        cells=st.sets(st.sampled_from([Cell("f", 1), Cell("f", 2), Cell("g", 1)]), min_size=1),
        total=st.integers(1, 40),
        closed=st.frozensets(st.sampled_from(GATES), max_size=2),
    )
    def lease(self, cells: set[Cell], total: int, closed: frozenset[Closed]) -> None:
        demand = Demand(dict.fromkeys(cells, 100), closed, total)
        leased = self.do(self.engine.queue.lease(demand, LEASE, 0))
        self.leases_ended(() if leased is None else leased.ids)
        eligible = self.eligible(demand)
        if leased is None:
            assert not eligible
            return
        assert len(set(leased.ids)) == len(leased.ids) <= total
        assert set(leased.ids) <= eligible
        assert len(leased.ids) == min(total, len(eligible))
        columns = zip(leased.ids, leased.kinds, leased.payloads, leased.attempts, strict=True)
        for id, kind, payload, attempt in columns:
            item = self.items[id]
            assert (kind, payload, attempt) == (item.kind, item.payload, item.attempts + 1)
            assert leased.fence > item.fence
            item.state, item.fence, item.settled = State.ENQUEUED, leased.fence, None
            item.until = self.engine.now() + LEASE
        self.fences.append(leased.fence)

    @rule()
    def hear(self) -> None:
        """Claims the callbacks that are due, and checks that they tell every end that was not told yet, and no
        other."""
        leased = self.do(
            self.engine.queue.lease(Demand({Cell(TOLD.function, TOLD.priority): 1000}, frozenset(), 1000), LEASE, 0)
        )
        self.leases_ended()
        ended = {id for id, item in self.items.items() if item.state in TERMINAL and item.tells and not item.heard}
        if leased is None:
            assert not ended
            return
        events = [json.loads(payload)["event"] for payload in leased.payloads]
        assert {event["workload"]: event["state"] for event in events} == {
            id: self.items[id].state.label for id in ended
        }
        assert len(events) == len(ended)
        assert self.do(self.engine.queue.settle(leased.fence, leased.ids, [])) == []
        for id in ended:
            self.items[id].heard = True

    @rule(data=st.data())
    def renew(self, data: st.DataObject) -> None:
        if not self.items:
            return
        fence = data.draw(st.sampled_from(self.fences))
        ids = data.draw(st.lists(st.sampled_from(self.order), unique=True, max_size=8))
        renewed = self.do(self.engine.queue.renew(ids, fence, LEASE, State.PROCESSING))
        for id in ids:
            item = self.items[id]
            held = item.fence == fence and item.state in LEASED
            if held and self.over(item):
                held = id not in renewed.lost
                if not held:
                    continue
            assert (id in renewed.lost) is not held
            assert (id in renewed.cancel) is (held and item.cancel)
            if held:
                item.until = max(item.until, self.engine.now() + LEASE)
                item.state = State.PROCESSING

    @rule(data=st.data(), state=st.sampled_from(SETTLED), delay=st.sampled_from([0.0, 4.0]), plain=st.booleans())
    def settle(self, data: st.DataObject, state: State, delay: float, plain: bool) -> None:
        if not self.items:
            return
        fence = data.draw(st.sampled_from(self.fences))
        ids = data.draw(st.lists(st.sampled_from(self.order), unique=True, max_size=8))
        state = State.SUCCESS if plain else state
        due = self.engine.now() + delay
        charged = {id: self.items[id].attempts + (state is State.RETRIABLE_FAILURE) for id in ids}
        others = [] if plain else [Settle(id, fence, state, delay, charged[id]) for id in ids]
        refused = self.do(self.engine.queue.settle(fence, ids if plain else [], others))
        for id in ids:
            item = self.items[id]
            if item.fence == fence and item.settled is not None:
                assert (id in refused) is not (item.settled is state)
                continue
            mine = item.fence == fence and item.state in LEASED
            if mine and self.over(item) and id in refused:
                continue
            if state is State.CANCELLED and (item.state is state or (item.cancel and self.over(item))):
                continue  # it says what is so already: whether as a repetition, a store need not know
            assert (id in refused) is not mine
            if mine:
                end = State.CANCELLED if item.cancel and state in WAITING else state
                item.state, item.settled, item.until = end, state, 0.0
                item.due, item.attempts, item.first = due, charged[id], not delay

    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        if not self.items:
            return
        ids = data.draw(st.lists(st.sampled_from(self.order), unique=True, max_size=3))
        for id, answer in zip(ids, self.do(self.engine.queue.cancel(ids)), strict=True):
            item = self.items[id]
            if self.over(item) and answer == "cancelled":
                item.state, item.cancel = State.CANCELLED, True
            elif item.state in LEASED:
                assert answer == "requested"
                item.cancel = True
            else:
                assert answer == ("ended" if item.state in TERMINAL else "cancelled")
                if item.state in WAITING:
                    item.state, item.settled = State.CANCELLED, None

    @rule(
        data=st.data(),
        delay=st.sampled_from([None, NOW, 2.0, 15.0]),
        priority=st.sampled_from([None, 1, 2]),
    )
    def reschedule(self, data: st.DataObject, delay: float | None, priority: int | None) -> None:
        if not self.items:
            return
        now = self.engine.now()
        due = delay if delay in (None, NOW) else now + delay
        ids = data.draw(st.lists(st.sampled_from(self.order), unique=True, max_size=3))
        changes = [Reschedule(id, due, priority) for id in ids]
        for id, answer in zip(ids, self.do(self.engine.queue.reschedule(changes)), strict=True):
            item = self.items[id]
            if item.state not in WAITING:
                assert answer == (OUT if item.state in LEASED else ENDED)
                continue
            assert answer == (BEHIND if self.blocked(id) else CHANGED)
            if due is not None:
                item.first = item.first and due == NOW
                item.due = min(item.due, now) if due == NOW else due
            if priority is not None:
                item.kind = item.kind._replace(priority=priority)

    @rule(seconds=st.sampled_from([0.5, 3.0, 11.0]))
    def time_passes(self, seconds: float) -> None:
        self.do(self.engine.pass_time(seconds))

    @rule()
    def reopen(self) -> None:
        self.do(self.engine.reopen())

    # What holds after each.

    @invariant()
    def the_store_says_what_the_model_says(self) -> None:
        found = self.do(self.engine.queue.status(self.order))
        counts: dict[str, int] = {}
        settled = True
        for id, status in zip(self.order, found, strict=True):
            item = self.items[id]
            counts[item.state.label] = counts.get(item.state.label, 0) + 1
            if self.over(item):
                settled = False
                continue
            if item.tells and item.state in TERMINAL:
                telling = State.SUCCESS.label if item.heard else State.NEW.label
                counts[telling] = counts.get(telling, 0) + 1
            assert status is not None
            assert (status.state, status.kind, status.attempts) == (item.state, item.kind, item.attempts)
            look = next_trigger(item.state, item.due, item.until) or 0.0
            early = item.first and item.state in WAITING and status.due < look
            assert abs(status.due - look) < 0.01 or early
        if settled:
            told = self.do(self.engine.queue.counts())
            tally = self.do(self.engine.queue.tally())
            assert tally.states == told
            assert sum(tally.states.values()) == tally.taken - tally.forgotten
            assert {label: count for label, count in told.items() if count} == counts
            spent: dict[tuple[str, int], int] = {}
            for item in self.items.values():
                if item.attempts and item.state not in TERMINAL:
                    cell = item.kind.function, item.kind.priority
                    spent[cell] = max(item.attempts, spent.get(cell, 0))
            ages = self.do(self.engine.queue.ageing())
            assert {(each.function, each.priority): each.attempts for each in ages if each.attempts} == spent
