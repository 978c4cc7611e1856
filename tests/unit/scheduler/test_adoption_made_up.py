"""Adoption in the core: questions about rows that are made up, and rows that nobody comes for."""

from __future__ import annotations

from scenes.adoption_bench import KEPT, ROW, SIZES, WALL, Bench


def test_a_question_about_a_version_that_nobody_can_have_read_bars_nobody() -> None:
    # Given an owner whose connection broke for a moment
    bench = Bench()
    first = bench.owner("first", 1, 1)
    bench.die(first)
    # When somebody asks about a version that no store will write for ages, in a session or beside one
    assert bench.ask(bench.session("liar"), 1, 1 << 62).refused
    assert bench.core.adoptions.set_aside(ROW, 1, 1 << 62, KEPT, WALL).refused
    # Then the owner that is back, and shows its next version, goes on
    bench.core.tailer_connected(first)
    bench.core.adoptions.show(first, ROW, 1, 2)
    bench.push(first, 1, 1, [7])
    assert list(bench.sent().values()) == [7]


def test_rows_that_are_made_up_leave_room_for_every_stream() -> None:
    # Given somebody who asks about 66,000 rows, and a session that shows as many
    bench = Bench()
    for number in range(66_000):
        bench.core.adoptions.set_aside((f"made up {number}", ""), 1, 1, KEPT, WALL)
    liar = bench.session("liar")
    for number in range(66_000):
        bench.core.adoptions.show(liar, (f"shown {number}", ""), 1, 1)
    # Then a new stream's pushes count all the same
    bench.push(bench.owner("first", 1, 1), 1, 1, [7])
    assert list(bench.sent().values()) == [7]


def test_rows_that_nobody_comes_for_are_forgotten_but_not_before_their_lease() -> None:
    # Given a question about a row that was never shown
    bench = Bench()
    assert not bench.core.adoptions.set_aside(ROW, 1, 5, KEPT, WALL).refused
    rows = bench.core.adoptions._rows
    # Then it is known for as long as its late owner may still speak, which is barred until then
    for moment in (KEPT, KEPT + 1, KEPT + 2 * SIZES.source):
        bench.core.adoptions.tick(moment)
        assert not rows[ROW].row.allows(1)
    bench.core.adoptions.tick(KEPT + 1 + 2 * SIZES.source)
    assert ROW not in rows


def test_a_row_without_a_version_is_not_shown() -> None:
    # Given a row that somebody asked about, and a session that shows it and another one in no version
    bench = Bench()
    asked, liar = ("asked", ""), bench.session("liar")
    assert not bench.core.adoptions.set_aside(asked, 1, 5, KEPT, WALL).refused
    for key in (ROW, asked):
        bench.core.adoptions.show(liar, key, 0, 0)
    # Then the one is not known, and the other is forgotten as if nobody had shown it
    assert list(bench.core.adoptions._rows) == [asked]
    for moment in (KEPT, KEPT + 1, KEPT + 1 + 2 * SIZES.source):
        bench.core.adoptions.tick(moment)
    assert not bench.core.adoptions._rows
