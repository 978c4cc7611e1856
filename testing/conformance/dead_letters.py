"""The laws that every store of dead letters obeys."""

from __future__ import annotations

import dataclasses

from hypothesis import given
from hypothesis import strategies as st

from ...model.dead_letter import EVERY, DeadLetter, LetterFilter, LetterRoom, Moved
from ...model.redrive import past_of
from ...model.tries import Try
from ...model.workload import Kind
from ...stores.dead_letters.dead_letters import DeadLetters
from .bench import MODEL, StoreBench, StoreLaws

#: Most letters of a function and tenant in the stores under test.
BOUND = 3000


def letter(id: str, function: str = "f", **changes: object) -> DeadLetter:
    plain = DeadLetter(id, "t", Kind(function), b"payload of " + id.encode(), "fatal", "boom", 3, 1, 1.5, 2.5)
    return dataclasses.replace(plain, **changes)  # type: ignore[arg-type]


async def ids_of(store: StoreBench[DeadLetters], function: str = "") -> list[str]:
    return [each.id for each in await store.engine.list(LetterFilter(function=function), 1000)]


async def numbers_of(store: StoreBench[DeadLetters], *ids: str) -> list[int]:
    return [each.number for each in await store.engine.list(LetterFilter(ids=ids), 1000)] if ids else []


ids = st.sampled_from(["a", "b", "c", "d/é"])
steps = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.lists(st.tuples(ids, st.sampled_from("fg")), max_size=3)),
        st.tuples(st.just("remove"), st.lists(ids, max_size=3)),
        st.tuples(st.just("reopen"), st.none()),
    ),
    max_size=15,
)


class DeadLetterLaws(StoreLaws[DeadLetters]):
    """A letter stays whole until it is removed; lists go from the oldest on, page by page."""

    async def test_a_letter_comes_back_whole(self, store: StoreBench[DeadLetters]) -> None:
        full = DeadLetter(
            id="t/0/1",
            tailer="t",
            kind=Kind("f", 0, "c/é", "tenant"),
            payload=b"\x00\xff" * 1000,
            outcome="fatal",
            reason="line one\nline two: è",
            attempts=20,
            crashes=2,
            first_seen=1_700_000_000.125,
            died_at=1_700_000_001.25,
            key="k",
            headers=(("a", "1"), ("a", "2"), ("", "\x00")),
            progress="half",
            partition="p/é",
            position=1 << 40,
        )
        await store.engine.add([full, letter("plain")])
        for _ in range(2):
            assert await store.engine.get("t/0/1") == full
            assert await store.engine.get("plain") == letter("plain")
            await store.reopen()

    async def test_an_unknown_id_is_none(self, store: StoreBench[DeadLetters]) -> None:
        assert await store.engine.get("unknown") is None
        assert await store.engine.remove([17]) == 0
        await store.engine.mark([17], True)
        assert await store.engine.list(LetterFilter(moving=True), 10) == []
        assert await store.engine.remove([]) == 0
        assert await store.engine.count() == 0

    async def test_adding_nothing_is_harmless(self, store: StoreBench[DeadLetters]) -> None:
        await store.engine.add([])
        assert await store.engine.count() == 0

    async def test_a_known_id_is_replaced_and_counted_once(self, store: StoreBench[DeadLetters]) -> None:
        await store.engine.add([letter("a"), letter("b")])
        await store.engine.add([letter("a", "g", reason="again", attempts=9)])
        assert await store.engine.count() == 2
        assert await store.engine.get("a") == letter("a", "g", reason="again", attempts=9)
        assert await ids_of(store, "f") == ["b"]

    async def test_what_replaced_a_letter_is_not_removed_in_its_place(self, store: StoreBench[DeadLetters]) -> None:
        await store.engine.add([letter("a")])
        numbers = await numbers_of(store, "a")
        await store.engine.mark(numbers, True)
        await store.engine.add([letter("a", died_at=9.0)])
        assert await store.engine.remove(numbers) == 0
        assert await store.engine.get("a") == letter("a", died_at=9.0)
        assert await store.engine.list(LetterFilter(moving=True), 10) == []

    async def test_a_list_is_oldest_first_and_without_payloads(self, store: StoreBench[DeadLetters]) -> None:
        await store.engine.add([letter("z"), letter("a")])
        await store.engine.add([letter("m")])
        found = await store.engine.list(EVERY, 10)
        assert [each.id for each in found] == ["z", "a", "m"]
        assert found[0] == letter("z", payload=b"")

    async def test_a_list_is_of_one_function_or_of_all(self, store: StoreBench[DeadLetters]) -> None:
        await store.engine.add([letter("1", "f"), letter("2", "g"), letter("3", "f")])
        assert await ids_of(store, "f") == ["1", "3"]
        assert await ids_of(store, "g") == ["2"]
        assert await ids_of(store, "h") == []
        assert await ids_of(store) == ["1", "2", "3"]

    async def test_pages_follow_each_other_without_gap_or_repeat(self, store: StoreBench[DeadLetters]) -> None:
        await store.engine.add([letter(f"{number:02}", "fg"[number % 2]) for number in range(20)])
        for function, expected in (("", range(20)), ("g", range(1, 20, 2))):
            seen: list[str] = []
            after = 0
            while page := await store.engine.list(LetterFilter(function=function), 3, after):
                assert len(page) <= 3
                seen.extend(each.id for each in page)
                after = page[-1].number
            assert seen == [f"{number:02}" for number in expected]

    async def test_pages_go_on_where_they_were_when_letters_go_meanwhile(self, store: StoreBench[DeadLetters]) -> None:
        await store.engine.add([letter(f"{number:02}") for number in range(9)])
        first = await store.engine.list(EVERY, 3)
        assert await store.engine.remove([each.number for each in first]) == 3
        await store.engine.add([letter("late")])
        rest = await store.engine.list(EVERY, 10, first[-1].number)
        assert [each.id for each in rest] == ["03", "04", "05", "06", "07", "08", "late"]

    async def test_payloads_come_up_to_a_bound_and_always_one(self, store: StoreBench[DeadLetters]) -> None:
        await store.engine.add([letter(str(number), payload=bytes(100)) for number in range(5)])
        assert [len(each.payload) for each in await store.engine.list(EVERY, 10, 0, 350)] == [100, 100, 100]
        assert [len(each.payload) for each in await store.engine.list(EVERY, 10, 0, 1)] == [100]
        assert len(await store.engine.list(EVERY, 2, 0, 10_000)) == 2

    async def test_every_condition_of_a_filter_holds(self, store: StoreBench[DeadLetters]) -> None:
        kind = Kind("f", 1, "nightly", "acme")
        plain = letter("plain", died_at=10.0)
        special = letter("special", kind=kind, tailer="u", reason="50% of_all", died_at=20.0, attempts=9, crashes=4)
        await store.engine.add([plain, special])
        for which in (
            LetterFilter(ids=("special", "unknown")),
            LetterFilter(tailer="u"),
            LetterFilter(collection="nightly"),
            LetterFilter(tenant="acme"),
            LetterFilter(reason="% of_"),
            LetterFilter(since=20.0),
            LetterFilter(attempts=9),
            LetterFilter(crashes=4),
            LetterFilter(function="f", tenant="acme", since=11.0, until=21.0),
        ):
            assert [each.id for each in await store.engine.list(which, 10)] == ["special"], which
            assert await store.engine.counts(which) == {"f": 1}
        for which in (LetterFilter(until=20.0), LetterFilter(reason="boom")):
            assert [each.id for each in await store.engine.list(which, 10)] == ["plain"], which
        for which in (LetterFilter(since=20.5), LetterFilter(reason="BOOM"), LetterFilter(tailer="u", reason="boom")):
            assert await store.engine.list(which, 10) == []
            assert await store.engine.counts(which) == {}

    async def test_counts_are_by_function(self, store: StoreBench[DeadLetters]) -> None:
        await store.engine.add([letter("1", "f"), letter("2", "g"), letter("3", "f")])
        assert await store.engine.counts() == {"f": 2, "g": 1}

    async def test_a_mark_stays_until_it_is_taken_back(self, store: StoreBench[DeadLetters]) -> None:
        await store.engine.add([letter("a"), letter("b")])
        await store.engine.mark(await numbers_of(store, "b"), True)
        await store.reopen()
        assert [each.id for each in await store.engine.list(LetterFilter(moving=True), 10)] == ["b"]
        await store.engine.mark(await numbers_of(store, "b"), False)
        assert await store.engine.list(LetterFilter(moving=True), 10) == []

    async def test_what_moved_is_gone_and_its_past_meets_the_next_death(self, store: StoreBench[DeadLetters]) -> None:
        # Given a letter that became the workload `new`, which died too, before or after the move was noted
        for early in (False, True):
            await store.engine.add([letter("a", partition="p", position=7, first_seen=1.0)])
            [first] = await store.engine.list(LetterFilter(ids=("a",)), 1)
            again = letter("new", tailer="queue", first_seen=50.0, died_at=60.0)
            if early:
                await store.engine.add([again])
            assert await store.engine.moved([Moved(first.number, "new", past_of(first))], 55.0) == 1
            if not early:
                await store.engine.add([again])
            await store.reopen()
            # Then its letter tells both, and is found by where it first came from
            [second] = await store.engine.list(LetterFilter(tailer="t", redrives=1), 10)
            assert (second.id, second.tailer, second.first_seen, second.redrives) == ("new", "queue", 1.0, 1)
            assert second.past == past_of(first)
            assert (second.past.tailer, second.past.id) == ("t", "a")
            assert await store.engine.get("a") is None
            # And a move that is repeated changes nothing
            assert await store.engine.moved([Moved(first.number, "new", past_of(first))], 55.0) == 0
            assert [each.id for each in await store.engine.list(EVERY, 10)] == ["new"]
            await store.engine.remove([second.number])
            # And with the letter its past is forgotten
            await store.engine.add([again])
            assert (await store.engine.list(EVERY, 10))[0].past is None
            await store.engine.remove(await numbers_of(store, "new"))

    async def test_the_letter_of_what_stands_in_line_again_stays_until_that_has_ended(
        self, store: StoreBench[DeadLetters]
    ) -> None:
        # Given a letter whose item got another life where it died, and one that became another workload
        placed = letter("t/p/7", partition="p", position=7, died_at=5.0)
        await store.engine.add([placed, letter("a")])
        first, other = await store.engine.list(EVERY, 2)
        await store.engine.mark([first.number, other.number], True)
        moves = [Moved(first.number, "t/p/7", past_of(first)), Moved(other.number, "new", past_of(other))]
        assert await store.engine.moved(moves, 6.0) == 1
        await store.reopen()
        # Then it stays as it was, marked, and its past knows this death; so it does when that is said again
        assert await store.engine.moved(moves[:1], 6.5) == 0
        [stays] = await store.engine.list(LetterFilter(moving=True, tailer="t"), 10, 0, 1)
        assert (stays.id, stays.number, stays.payload, stays.in_line) == ("t/p/7", first.number, placed.payload, True)
        assert stays.past == past_of(first)
        # And when it dies again, its letter is replaced, without the mark; and it is in line no more
        await store.engine.add([letter("t/p/7", partition="p", position=7, died_at=9.0)])
        assert await store.engine.list(LetterFilter(moving=True), 10) == []
        [again] = await store.engine.list(LetterFilter(redrives=1), 10)
        assert (again.id, again.in_line, again.past) == ("t/p/7", False, past_of(first))
        assert await store.engine.remove([first.number]) == 0
        # And its second life leaves nothing but the place
        await store.engine.mark([again.number], True)
        await store.engine.moved([Moved(again.number, "t/p/7", past_of(again))], 10.0)
        assert (await store.engine.list(EVERY, 10))[0].redrives == 2
        assert await store.engine.remove([again.number]) == 1
        assert await store.engine.positions("t") == {"p": 1}
        assert await store.engine.list(EVERY, 10) == []

    async def test_how_its_attempts_went_stays_with_its_letter(self, store: StoreBench[DeadLetters]) -> None:
        tries = (Try(1.5, "retry", "é away"), Try(2.25, "fatal", ""))
        await store.engine.add([letter("a", tries=tries), letter("b")])
        await store.reopen()
        assert [each.tries for each in await store.engine.list(EVERY, 10)] == [tries, ()]
        # When it dies anew without any, and when it goes
        await store.engine.add([letter("a")])
        found = await store.engine.get("a")
        assert found is not None
        assert found.tries == ()
        await store.engine.add([letter("b", tries=tries)])
        await store.engine.remove(await numbers_of(store, "b"))
        await store.engine.add([letter("b")])
        assert [each.tries for each in await store.engine.list(EVERY, 10)] == [(), ()]

    async def test_a_position_that_had_a_letter_stays_counted(self, store: StoreBench[DeadLetters]) -> None:
        # Given letters of positions, and one without
        for number in range(5):
            await store.engine.add([letter(f"t/p/{number}", partition="p", position=number)])
        await store.engine.add([letter("queued"), letter("u/p/0", tailer="u", partition="p", position=0)])
        assert await store.engine.positions("t") == {"p": 5}
        # When one is purged, one is redriven, and one of them dies once more
        one, two = await store.engine.list(LetterFilter(ids=("t/p/1", "t/p/2")), 2)
        await store.engine.remove([one.number])
        await store.engine.moved([Moved(two.number, "new", past_of(two))], 1.0)
        await store.engine.remove(await numbers_of(store, "queued"))
        await store.engine.add([letter("t/p/1", partition="p", position=1)])
        # Then each counts once
        for _ in range(2):
            assert await store.engine.positions("t") == {"p": 5}
            assert await store.engine.positions("u") == {"p": 1}
            assert await store.engine.positions("none") == {}
            assert [await store.engine.died("t", "p", first, 4) for first in (0, 1, 4)] == [4, 3, 0]
            assert [await store.engine.died_at("t", "p", first, 4, 9) for first in (1, 4)] == [[1, 2, 3], []]
            assert await store.engine.died_at("t", "p", 0, 4, 2) == [0, 1]
            assert await store.engine.died("u", "p", 0, 9) == 1
            assert await store.engine.died("t", "none", 0, 9) == 0
            await store.reopen()

    async def test_removed_letters_are_gone_and_the_others_stay(self, store: StoreBench[DeadLetters]) -> None:
        await store.engine.add([letter("a"), letter("b"), letter("c")])
        numbers = await numbers_of(store, "a", "c")
        assert await store.engine.remove([*numbers, 1000, numbers[0]]) == 2
        for _ in range(2):
            assert await ids_of(store) == ["b"]
            assert await store.engine.count() == 1
            await store.reopen()

    async def test_many_letters_at_once_are_kept_as_far_as_there_is_room(self, store: StoreBench[DeadLetters]) -> None:
        # Given a room that is full, given one too many, and those of another tenant and another function
        ours, theirs = [letter(str(number)) for number in range(BOUND)], letter("theirs", kind=Kind("f", tenant="a/é"))
        assert await store.engine.add([*ours, letter("one"), theirs, letter("other", "g")]) == ["one"]
        for _ in range(2):
            assert await store.engine.count() == BOUND + 2
            assert await store.engine.counts() == {"f": BOUND + 1, "g": 1}
            assert await store.engine.rooms() == [LetterRoom("f", "", BOUND, BOUND)]
            assert [
                (room.held, room.left) for room in await store.engine.rooms([("g", ""), ("f", ""), ("none", "")])
            ] == [
                (1, BOUND - 1),
                (BOUND, 0),
                (0, BOUND),
            ]
            await store.reopen()
        # When another one dies, one that is known, and one of the others, Then only the first finds no room
        again = letter("7", reason="again")
        assert await store.engine.add([letter("more"), again, letter("their second", kind=theirs.kind)]) == ["more"]
        assert await store.engine.get("more") is None
        assert await store.engine.get("7") == again
        # And there is as much as others leave, whichever way they go
        found = await store.engine.list(LetterFilter(function="f"), 2)
        assert await store.engine.moved([Moved(found[0].number, "new", past_of(found[0]))], 1.0) == 1
        assert await store.engine.remove([found[1].number]) == 1
        assert await store.engine.add([letter("more"), letter("last"), letter("late")]) == ["late"]
        found = await store.engine.list(LetterFilter(function="f"), BOUND + 2)
        assert await store.engine.remove([each.number for each in found]) == BOUND + 2
        assert await store.engine.rooms([("f", ""), ("f", "a/é")]) == [
            LetterRoom("f", "", 0, BOUND),
            LetterRoom("f", "a/é", 0, BOUND),
        ]
        assert await store.engine.counts() == {"g": 1}

    @MODEL
    @given(steps=steps)
    def test_any_story_is_the_story_of_a_dictionary(self, steps: list[tuple[str, object]]) -> None:
        async def story(store: StoreBench[DeadLetters]) -> None:
            known: dict[str, str] = {}
            for what, value in steps:
                if what == "add":
                    assert isinstance(value, list)
                    await store.engine.add([letter(id, function) for id, function in value])
                    known |= dict(value)
                elif what == "remove":
                    assert isinstance(value, list)
                    gone = set(value) & set(known)
                    assert await store.engine.remove(await numbers_of(store, *value)) == len(gone)
                    for id in gone:
                        del known[id]
                else:
                    await store.reopen()
                assert await store.engine.count() == len(known)
                for function in "fg":
                    assert set(await ids_of(store, function)) == {id for id, own in known.items() if own == function}

        self.with_store(story)
