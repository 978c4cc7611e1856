"""The laws of keys of tenants: nobody meets another's by the same text, and each sees its own as it was given."""

from __future__ import annotations

from ...model.search import Search
from ...model.tenant_key import MARK
from ...model.workload import Kind
from ...stores.queue.queue import NewItem, Submitted
from .queue_engine import QueueEngine, nothing, put, take, wanting

#: Tenants, and none.
TENANTS = ("", "a", "ab", "b")


def of(tenant: str) -> Kind:
    """The kind of a tenant's items."""
    return Kind("mail", 2, "", tenant)


class TenantKeyLaws:
    """Laws of keys of tenants."""

    async def test_a_dedupe_key_is_its_tenants_own(self, engine: QueueEngine) -> None:
        # Given one item of each tenant, with the same dedupe key
        firsts = await engine.queue.submit([NewItem(of(each), b"", dedupe_key="k") for each in TENANTS])
        assert [each.duplicate for each in firsts] == [False] * len(TENANTS)
        # When each comes again, in one submission and through a restart
        await engine.reopen()
        again = await engine.queue.submit([NewItem(of(each), b"", dedupe_key="k") for each in reversed(TENANTS)])
        # Then each is known as its tenant's
        assert again == [Submitted(each.id, True) for each in reversed(firsts)]
        # And no text without a tenant is another's key
        forged = [NewItem(of(""), b"", dedupe_key=f"{MARK}a{MARK}k"), NewItem(of(""), b"", dedupe_key="ak")]
        assert [each.duplicate for each in await engine.queue.submit(forged)] == [False, False]

    async def test_a_token_of_a_submission_is_known_whatever_its_tenant(self, engine: QueueEngine) -> None:
        token = "submission:" + "0" * 32
        [first] = await engine.queue.submit([NewItem(of("a"), b"", dedupe_key=token)])
        assert await engine.queue.submit([NewItem(of("a"), b"", dedupe_key=token)]) == [Submitted(first.id, True)]

    async def test_a_key_orders_the_items_of_its_tenant_alone(self, engine: QueueEngine) -> None:
        # Given two items of each tenant with the same key
        firsts = await put(engine, *(NewItem(of(each), b"1", key="k") for each in TENANTS))
        seconds = await put(engine, *(NewItem(of(each), b"2", key="k") for each in TENANTS))
        # When they are claimed, then the first of each tenant is out, with the key as it was given
        leased = await take(engine, wanting(of("")))
        assert sorted(leased.ids) == sorted(firsts)
        assert [extra.key for extra in leased.extras.values()] == ["k"] * len(TENANTS)
        assert await nothing(engine, wanting(of("")))
        # And the second one of a tenant follows when its first has ended
        await engine.reopen()
        for first, second in zip(firsts, seconds, strict=True):
            peeked = await engine.queue.peek(second, 10)
            assert peeked is not None and (peeked.key, peeked.behind) == ("k", first)
            assert await engine.queue.settle(leased.fence, [first], []) == []
            assert (await take(engine, wanting(of("")))).ids == [second]

    async def test_items_are_found_by_the_key_as_it_was_given(self, engine: QueueEngine) -> None:
        ids = await put(engine, *(NewItem(of(each), b"", key="k") for each in TENANTS), NewItem(of("a"), b"", key="kk"))
        found = await engine.queue.find(Search(key="k"))
        assert sorted(each.id for each in found.statuses) == sorted(ids[:-1])
        for tenant, id in zip(TENANTS[1:], ids[1:], strict=False):
            found = await engine.queue.find(Search(tenant=tenant, key="k"))
            assert [each.id for each in found.statuses] == [id]
