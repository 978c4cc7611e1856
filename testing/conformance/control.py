"""The laws that every control store obeys."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from ...model.function_spec import FunctionSpec
from ...model.gate import Gate
from ...model.limits import KEPT_CHANGES, Quota, QuotaChange
from ...model.priority import Priority
from ...model.retry import Retry
from ...model.rights import Right
from ...model.token import Token
from ...stores.control.control import Control
from .acts import ActLaws
from .bench import MODEL, MOMENT, SOON, StoreBench
from .members import MemberLaws

names = st.sampled_from(["f", "g", "mail.é"])
changes = st.one_of(
    st.builds(
        Gate, names, st.sampled_from(["", "c"]), st.sampled_from(["pause", "drop", "resume"]), since=st.just(5.0)
    ),
    st.builds(Quota, names, st.integers(0, 2), st.sampled_from([0.0, 0.5]), st.sampled_from([0.0, 2.0])),
    st.lists(st.builds(FunctionSpec, names, st.sampled_from(["1", "2"])), max_size=2),
    st.none(),  # opened again
)


class ControlLaws(ActLaws, MemberLaws):
    """Every change raises the one version; a snapshot is everything, whole, at its version."""

    async def test_a_new_store_has_a_version_and_nothing_else(self, store: StoreBench[Control]) -> None:
        found = await store.engine.snapshot()
        assert found.version >= 1  # 0 is what somebody says who has seen none
        assert (found.gates, found.quotas, found.functions) == ([], [], [])

    async def test_a_gate_stays_with_who_why_and_since_when(self, store: StoreBench[Control]) -> None:
        gate = Gate("f", "c", "pause", "ann", "the bank is down — è", 123.5)
        before = (await store.engine.snapshot()).version
        version = await store.engine.put_gate(gate)
        assert version > before
        for _ in range(2):
            found = await store.engine.snapshot()
            assert (found.version, found.gates) == (version, [gate])
            await store.reopen()

    async def test_each_gate_knows_the_version_it_made(self, store: StoreBench[Control]) -> None:
        first = await store.engine.put_gate(Gate("f", "", "pause"))
        second = await store.engine.put_gate(Gate("f", "c", "drop", "ann", "test data"))
        third = await store.engine.put_gate(Gate("f", "", "drop", "ann", "all of it"))
        assert first < second < third
        for _ in range(2):
            assert [gate.version for gate in (await store.engine.snapshot()).gates] == [third, second]
            await store.reopen()

    async def test_a_gate_without_a_time_gets_the_clocks(self, store: StoreBench[Control]) -> None:
        await store.engine.put_gate(Gate("f", "", "drop"))
        assert (await store.engine.snapshot()).gates[0].since == store.clock.wall()

    async def test_a_gate_replaces_the_one_of_the_same_function_and_collection(
        self, store: StoreBench[Control]
    ) -> None:
        for gate in (
            Gate("f", "", "pause", since=1.0),
            Gate("f", "c", "pause", since=1.0),
            Gate("f", "", "drop", since=2.0),
        ):
            await store.engine.put_gate(gate)
        assert (await store.engine.snapshot()).gates == [
            Gate("f", "", "drop", since=2.0),
            Gate("f", "c", "pause", since=1.0),
        ]

    async def test_resuming_removes_a_gate_and_resuming_again_changes_nothing(self, store: StoreBench[Control]) -> None:
        await store.engine.put_gate(Gate("f", "", "pause"))
        await store.engine.put_gate(Gate("f", "c", "pause"))
        version = await store.engine.put_gate(Gate("f", "", "resume"))
        assert [gate.collection for gate in (await store.engine.snapshot()).gates] == ["c"]
        assert await store.engine.put_gate(Gate("f", "", "resume")) == version

    async def test_gates_of_every_dimension_stand_beside_each_other(self, store: StoreBench[Control]) -> None:
        gates = [
            Gate("", "", "pause", "ann", "by hand", 1.0, source="orders", until=4e9),
            Gate("", "", "drop", "ann", "he left", 1.0, tenant="a"),
            Gate("", "", "pause", since=1.0, downstream="stripe"),
            Gate("", "", "pause", since=1.0, downstream="stripe", tenant="a"),
            Gate("f", "", "pause", since=1.0),
            Gate("f", "", "pause", since=1.0, tenant="a"),
            Gate("f", "c", "pause", since=1.0),
        ]
        for gate in gates:
            await store.engine.put_gate(gate)
        for _ in range(2):
            assert (await store.engine.snapshot()).gates == sorted(gates, key=lambda gate: gate.key)
            await store.reopen()
        for gate in gates[1:]:
            await store.engine.put_gate(replace(gate, action="resume"))
        assert (await store.engine.snapshot()).gates == gates[:1]

    async def test_a_gate_that_is_over_ends_as_a_new_version_unless_another_one_is_there(
        self, store: StoreBench[Control]
    ) -> None:
        # Given gates of which one is over, and one was set again meanwhile
        kept = [Gate("f", "", "pause", since=1.0), Gate("f", "c", "pause", since=1.0, until=4e9)]
        for gate in kept:
            await store.engine.put_gate(gate)
        over = Gate("g", "", "drop", "ann", "only today", 1.0, until=2.0)
        for gate in (over, replace(over, function="h")):
            await store.engine.put_gate(gate)
        known = [gate for gate in (await store.engine.snapshot()).gates if gate.until == 2.0]
        again = replace(over, function="h", until=3.0)
        made = await store.engine.put_gate(again)
        # When both end as they were known
        version = await store.engine.end_gates(known)
        # Then the first one is gone, which whoever waits hears of, and nothing more comes of it
        found = await store.engine.wait(made, SOON)
        assert found is not None and (found.version, found.gates) == (version, [*kept, again])
        assert version > made
        assert await store.engine.end_gates(known) == version
        assert await store.engine.end_gates() == version

    async def test_quotas_are_replaced_whole_and_each_version_is_kept(self, store: StoreBench[Control]) -> None:
        first = QuotaChange(0, "ann", "the first — è", 5.0, (Quota("f", concurrency=1),))
        made = await store.engine.put_quotas(first, 0)
        every = Quota("f", 5, 2.5, 10.0, 0.5, downstreams=("stripe", "smtp"))
        others = (Quota(tenant="a", rate=1.0), Quota(downstream="smtp", per="tenant", rate=3.0, max_values=7))
        second = await store.engine.put_quotas(QuotaChange(0, "bob", "", 6.0, (every, *others)), made)
        await store.reopen()
        found = await store.engine.snapshot()
        assert (found.version, found.quotas_version) == (second, second) > (made, made)
        assert found.quotas == sorted((every, *others), key=lambda quota: quota.key)
        changes = await store.engine.quota_changes()
        assert [(each.version, each.who, each.why, each.at) for each in changes] == [
            (second, "bob", "", 6.0),
            (made, "ann", "the first — è", 5.0),
        ]
        assert changes[1].quotas == first.quotas

    async def test_quotas_of_another_version_than_expected_change_nothing(self, store: StoreBench[Control]) -> None:
        made = await store.engine.put_quotas(QuotaChange(0, "", "", 5.0, (Quota("f", 1),)), 0)
        before = await store.engine.snapshot()
        assert await store.engine.put_quotas(QuotaChange(0, "", "", 5.0, ()), 0) == 0
        assert await store.engine.put_quotas(QuotaChange(0, "", "", 5.0, ()), made + 1) == 0
        assert await store.engine.snapshot() == before

    async def test_the_same_quotas_again_are_no_new_version(self, store: StoreBench[Control]) -> None:
        made = await store.engine.put_quotas(QuotaChange(0, "", "", 5.0, (Quota("f", 1),)), 0)
        assert await store.engine.put_quotas(QuotaChange(0, "x", "y", 6.0, (Quota("f", 1),)), made) == made
        assert len(await store.engine.quota_changes()) == 1

    async def test_the_last_versions_of_quotas_are_kept_and_no_more(self, store: StoreBench[Control]) -> None:
        made = 0
        for number in range(KEPT_CHANGES + 3):
            made = await store.engine.put_quotas(QuotaChange(0, "", "", 5.0, (Quota("f", number + 1),)), made)
        changes = await store.engine.quota_changes()
        assert len(changes) == KEPT_CHANGES
        assert changes[0].version == made and changes[-1].quotas == (Quota("f", 4),)

    async def test_a_function_is_kept_whole(self, store: StoreBench[Control]) -> None:
        spec = FunctionSpec(
            "mail.send", "v7", Priority.INTERACTIVE, Retry(3, "list", delays=(1.0, 60.0)), 2.5, "fast", "process", "é"
        )
        await store.engine.register([spec, FunctionSpec("a")])
        await store.reopen()
        assert (await store.engine.snapshot()).functions == [FunctionSpec("a"), spec]

    async def test_registering_the_same_again_is_no_new_version(self, store: StoreBench[Control]) -> None:
        specs = [FunctionSpec("f", "1"), FunctionSpec("g", "1")]
        version = await store.engine.register(specs)
        assert await store.engine.register(specs) == version
        assert await store.engine.register([]) == version
        assert await store.engine.register([FunctionSpec("g", "2")]) > version
        assert [spec.version for spec in (await store.engine.snapshot()).functions] == ["1", "2"]

    async def test_a_token_is_kept_whole_until_it_is_removed(self, store: StoreBench[Control]) -> None:
        rights = (Right("submit", "mail.*", "news", "acme"), Right("read"))
        ann, bob = Token("ann", "ab" * 32, rights, 4e9, 1.5, "root@é"), Token("bob", "cd" * 32, rights[:1], 5e9)
        before = (await store.engine.snapshot()).version
        second = await store.engine.put_token(bob)
        made = await store.engine.put_token(ann)
        assert before < second < made
        for _ in range(2):
            assert (await store.engine.snapshot()).tokens == [ann, bob]
            await store.reopen()
        # One that is there already is not replaced
        assert await store.engine.put_token(replace(ann, hash="ef" * 32)) == made
        # When one is removed, whoever waits hears of it
        removed = await store.engine.remove_token("ann")
        found = await store.engine.wait(made, SOON)
        assert found is not None and (found.version, found.tokens) == (removed, [bob])
        assert await store.engine.remove_token("ann") == removed

    async def test_a_store_is_of_the_fleet_that_said_so_first(self, store: StoreBench[Control]) -> None:
        before = await store.engine.snapshot()
        said = await asyncio.gather(*(store.engine.belong(name) for name in ("shop", "other", "shop")))
        assert len({*said}) == 1 and said[0] in ("shop", "other")
        await store.reopen()
        assert await store.engine.belong("third") == said[0]
        assert await store.engine.snapshot() == before

    async def test_a_wait_ends_with_the_next_change(self, store: StoreBench[Control]) -> None:
        version = (await store.engine.snapshot()).version
        waiting = asyncio.create_task(store.engine.wait(version, SOON * 10))
        await asyncio.sleep(0)
        changed = await store.engine.put_gate(Gate("f", "", "pause"))
        found = await asyncio.wait_for(waiting, SOON)
        assert found is not None
        assert (found.version, len(found.gates)) == (changed, 1)

    async def test_a_wait_with_another_version_ends_at_once(self, store: StoreBench[Control]) -> None:
        version = (await store.engine.snapshot()).version
        for other in (0, version + 5):  # one that has seen nothing, one that has seen another life of this store
            found = await asyncio.wait_for(store.engine.wait(other, SOON * 10), SOON)
            assert found is not None
            assert found.version == version

    async def test_a_wait_for_nothing_ends_in_time_and_empty_handed(self, store: StoreBench[Control]) -> None:
        version = (await store.engine.snapshot()).version
        assert await asyncio.wait_for(store.engine.wait(version, MOMENT), SOON) is None

    async def test_a_look_during_a_change_never_hides_it(self, store: StoreBench[Control]) -> None:
        # Given looks under way while changes are
        for number in range(20):
            made = (await store.engine.snapshot()).quotas_version
            change = QuotaChange(0, "", "", 5.0, (Quota("f", number + 1),))
            changing = asyncio.create_task(store.engine.put_quotas(change, made))
            looks = await asyncio.gather(*(store.engine.snapshot() for _ in range(3)))
            version = await changing
            # Then each look is whole, and one that begins after the change sees it
            assert all(look.version in (version - 1, version) for look in looks)
            found = await store.engine.snapshot()
            assert (found.version, found.quotas) == (version, [Quota("f", number + 1)])

    @MODEL
    @given(steps=st.lists(changes, max_size=15))
    def test_any_story_ends_in_the_last_word_of_each(
        self, steps: list[Gate | Quota | list[FunctionSpec] | None]
    ) -> None:
        async def story(store: StoreBench[Control]) -> None:
            version = (await store.engine.snapshot()).version
            gates: dict[tuple[str, str], Gate] = {}
            quotas: dict[str, Quota] = {}
            functions: dict[str, FunctionSpec] = {}
            for step in steps:
                if step is None:
                    await store.reopen()
                    continue
                if isinstance(step, Gate):
                    gates[step.function, step.collection] = step
                    if step.action == "resume":
                        del gates[step.function, step.collection]
                    after = await store.engine.put_gate(step)
                elif isinstance(step, Quota):
                    quotas[step.function] = step
                    if step == Quota(step.function):
                        del quotas[step.function]
                    change = QuotaChange(0, "", "", 5.0, tuple(quotas.values()))
                    after = await store.engine.put_quotas(change, (await store.engine.snapshot()).quotas_version)
                else:
                    functions |= {spec.name: spec for spec in step}
                    after = await store.engine.register(step)
                assert after >= version
                version = after
                found = await store.engine.snapshot()
                assert found.version == version
                assert {(gate.function, gate.collection): gate for gate in found.gates} == gates
                assert {quota.function: quota for quota in found.quotas} == quotas
                assert {spec.name: spec for spec in found.functions} == functions

        self.with_store(story)
