"""Laws of the rooms that tenants of jobs share: what is told of them, by the tenants of trees."""

from __future__ import annotations

import pytest

from ...model.errors import InvalidRequest
from ...stores.jobs.rules import refusals
from .jobs_engine import KEPT, MOST, JobsEngine, fill, job, make, shown, tree_of, work

#: Seconds behind which an engine has looked at what is kept.
LOOKED = 1.5
MUCH = b'"' + b"x" * (MOST - 100) + b'"'


class JobsRoomsLaws:
    """Laws of rooms. An engine's test derives from them and gives a fixture `engine`."""

    async def test_who_has_the_open_trees_is_told_while_they_are_many(
        self, engine: JobsEngine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(refusals, "MOST_OPEN", 8)
        # Given four trees without a tenant, which are half of those that may be open, and one more
        for number in range(4):
            await make(engine, tree_of(job("a"), id=f"none-{number}"))
        assert await engine.jobs.held("open") == (8, 4, {})
        await make(engine, tree_of(job("a"), id="none-4"))
        # Then nothing is told while nobody has a tenant
        assert await engine.jobs.held("open") == (8, 5, {})
        # When a tenant comes, then it is told, by the tenant of a tree's first job
        await make(engine, tree_of(job("a", tenant="acme"), job("b", "a", tenant="beta"), id="acme-1"))
        assert await engine.jobs.held("open") == (8, 6, {"": 5, "acme": 1})
        # And what ends leaves room
        for number in range(2):
            await engine.jobs.change(f"none-{number}", "cancel", "enough")
        assert await engine.jobs.held("open") == (8, 4, {})

    @pytest.mark.parametrize("fails", [False, True])
    async def test_who_has_the_bytes_that_trees_keep_is_told(self, engine: JobsEngine, fails: bool) -> None:
        # Given a tree of a tenant that keeps more than half of what may be kept, and one of another
        many = KEPT // len(MUCH) // 2 + 2
        size = many * len(MUCH)
        trees = [await make(engine, tree_of(job("a", tenant=name), id=name)) for name in ("acme", "beta")]
        for tree, count in zip(trees, (many, 1), strict=True):
            await fill(engine, tree, *[MUCH] * count)
            await engine.jobs.seal(tree.id, "")
            await work(engine, tree, lambda name, payload: None if fails else MUCH)
            assert (await shown(engine, tree)).state == "complete"
        await engine.pass_time(LOOKED)
        # Then each one's part is told, and nothing once there is room again
        assert await engine.jobs.held("kept") == (KEPT, size + len(MUCH), {"acme": size, "beta": len(MUCH)})
        await engine.jobs.change("acme", "delete", "")
        while await engine.sweep():
            pass
        await engine.pass_time(LOOKED)
        assert await engine.jobs.held("kept") == (KEPT, len(MUCH), {})

    async def test_a_room_that_trees_do_not_have_is_refused(self, engine: JobsEngine) -> None:
        with pytest.raises(InvalidRequest, match="'other': expected one of open, kept"):
            await engine.jobs.held("other")
