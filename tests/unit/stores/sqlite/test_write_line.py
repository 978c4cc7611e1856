"""The line of writes: light writes together, heavy ones alone, and neither for ever behind the other."""

from tailrace.stores.sqlite.write_line import WriteLine


def line(*waiting: str) -> WriteLine[str]:
    """A line of writes, of which heavy ones have a capital letter."""
    found = WriteLine[str]()
    for each in waiting:
        found.add(each, heavy=each.isupper())
    return found


def test_light_ones_go_before_a_heavy_one_that_came_first() -> None:
    waiting = line("A", "b", "c")
    assert [waiting.take(10) for _ in range(3)] == [["b", "c"], ["A"], []]


def test_a_heavy_one_that_waited_is_next_whatever_comes() -> None:
    # Given two heavy ones that waited while light ones were written
    waiting = line("A", "B", "c")
    assert waiting.take(10) == ["c"]

    # When light ones come without an end, then they take turns
    taken = []
    for _ in range(5):
        waiting.add("d", heavy=False)
        taken.append(waiting.take(10))
    assert taken == [["A"], ["d", "d"], ["B"], ["d", "d"], ["d"]]


def test_a_heavy_one_that_comes_with_light_ones_has_not_waited() -> None:
    waiting = line("a")
    assert waiting.take(10) == ["a"]
    for each in ("B", "c"):
        waiting.add(each, heavy=each.isupper())
    assert [waiting.take(10) for _ in range(2)] == [["c"], ["B"]]


def test_as_many_light_ones_as_fit_go_together() -> None:
    waiting = line(*"abcde")
    assert [waiting.take(2) for _ in range(3)] == [["a", "b"], ["c", "d"], ["e"]]
    assert len(waiting) == 0


def test_a_heavy_one_gives_way_when_somebody_light_waits() -> None:
    # Given a heavy write under way
    waiting = line("A")
    assert waiting.take(10) == ["A"] and not waiting.gives_way

    # When another heavy one comes, it takes its time; when a light one does, it does not
    waiting.add("B", heavy=True)
    assert not waiting.gives_way
    waiting.add("c", heavy=False)
    assert waiting.gives_way
    assert waiting.take(10) == ["c"] and not waiting.gives_way
