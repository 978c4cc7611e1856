"""Any ledger against a dictionary, in drawn stories."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ...model.errors import StaleFence
from ...model.ledger import TERMINAL, LedgerEntry, LedgerPlace
from ...stores.ledger.ledger import Change, Ledger
from ...stores.ledger.lifecycle import refusal
from .bench import MODEL, StoreBench, StoreLaws


async def rows(store: StoreBench[Ledger], source: str = "s") -> list[LedgerEntry]:
    return [each.entry for each in await store.engine.list(source, 10_000)]


def draw_change(data: st.DataObject, known: dict[int, LedgerEntry], owner: bool) -> Change | None:
    """Draws a change that a writer may ask for, from a row as it is or as somebody might once have read it."""
    position, places = data.draw(st.integers(0, 4)), st.sampled_from(list(LedgerPlace))
    before = known.get(position)
    if data.draw(st.integers(0, 4)) == 0:
        small = st.integers(0, 3)
        read = st.builds(lambda place, n, fence: LedgerEntry(position, place, n, fence=fence), places, small, small)
        before = data.draw(st.none() | read)
    former = before or LedgerEntry(position, LedgerPlace.SUSPECT)
    after = former._replace(
        place=data.draw(places),
        n=former.n + data.draw(st.integers(0, 1)),
        fence=former.fence + data.draw(st.integers(0, 2)),
        due=data.draw(st.floats(0, 2e9)),
        attempts=former.attempts + data.draw(st.integers(0, 1)),
    )
    return None if refusal(before, after, owner=owner) else (before, after)


class LedgerModel(StoreLaws[Ledger]):
    """Random steps on a ledger and on the dictionary: owners and copies write from rows as they are and as they
    were."""

    @MODEL
    @given(data=st.data())
    def test_any_story_is_the_story_of_a_dictionary(self, data: st.DataObject) -> None:
        async def story(store: StoreBench[Ledger]) -> None:
            await store.engine.open("s", "", 1)
            epoch, passed = 1, 0
            known: dict[int, LedgerEntry] = {}

            def sweep(*, suspects: bool) -> int:
                over = [
                    each.position
                    for each in known.values()
                    if each.position < passed
                    and (each.place in TERMINAL or (suspects and each.place is LedgerPlace.SUSPECT))
                ]
                for position in over:
                    del known[position]
                return len(over)

            for _ in range(data.draw(st.integers(0, 20))):
                what = data.draw(
                    st.sampled_from(["open", "write", "write", "write", "write", "copy", "passed", "reopen"])
                )
                behind = data.draw(st.sampled_from([0, 0, 0, 1]))
                if what == "open":
                    epoch += data.draw(st.integers(0, 1))
                    above = sorted(row for row in known.values() if row.position >= passed)
                    assert await store.engine.open("s", "", epoch) == above
                elif what in ("write", "copy"):
                    owner = what == "write"
                    drawn = [draw_change(data, known, owner) for _ in range(data.draw(st.integers(1, 4)))]
                    changes = [each for each in drawn if each is not None]
                    if owner and behind and changes:
                        with pytest.raises(StaleFence):
                            await store.engine.write("s", "", changes, epoch - 1)
                        continue
                    expected: list[LedgerEntry | None] = []
                    for before, after in changes:
                        row = known.get(after.position)
                        if row == before and (row is not None or after.position >= passed):
                            known[after.position] = after
                        expected.append(known.get(after.position))
                    assert await store.engine.write("s", "", changes, epoch if owner else None) == expected
                    sweep(suspects=False)
                elif what == "passed":
                    position = data.draw(st.integers(0, 6))
                    if behind:
                        with pytest.raises(StaleFence):
                            await store.engine.passed("s", "", epoch - 1, position)
                        continue
                    passed = max(passed, position)
                    assert await store.engine.passed("s", "", epoch, position) == sweep(suspects=True)
                else:
                    await store.reopen()
                assert await rows(store) == [known[position] for position in sorted(known)]
                assert await store.engine.get("s", "", [*range(5)]) == known

        self.with_store(story)
