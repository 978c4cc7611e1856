"""A store that was set back is known by its height, and nothing else is."""

from __future__ import annotations

import os
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tailrace.model.height import HIGHEST, KEPT, MOST, Height, forgettable, lacks, was_set_back
from tailrace.stores.remembered_heights import FOLDER, RememberedHeights

HEIGHTS = st.builds(Height, st.sampled_from("ab"), st.integers(0, HIGHEST + 5))


@given(HEIGHTS, HEIGHTS)
def test_a_store_was_set_back_where_it_is_lower_than_somebody_saw_the_same_one(now: Height, seen: Height) -> None:
    assert was_set_back(now, seen) == (now.store == seen.store and now.highest < min(seen.highest, HIGHEST))
    # And once it has risen to that, it was not
    assert not was_set_back(Height(now.store, max(now.highest, seen.highest)), seen)
    assert not was_set_back(now, None)


@given(st.lists(st.tuples(st.integers(1, 50), st.booleans()), max_size=30))
def test_what_was_handed_out_and_seen_is_never_reached_again_unseen(steps: list[tuple[int, bool]]) -> None:
    # Given a store whose fences rise, snapshots of it, and somebody who sees each fence that it gives
    height, snapshot, seen = Height("a", 0), Height("a", 0), Height("a", 0)
    for rise, sets_back in steps:
        if sets_back:
            height = snapshot
        # When it is opened, held off where it was set back, and raised
        if was_set_back(height, seen):
            height = Height("a", max(height.highest, seen.highest))
        # Then each next fence is above all that were given
        given = height.highest + rise
        assert given > seen.highest
        snapshot = height
        height = seen = Height("a", given)


@given(st.integers(0, 100), st.lists(st.integers(0, 50), max_size=8), st.integers(1, 100), st.data())
def test_while_it_runs_only_what_it_never_gave_counts(
    opened: int, gaps: list[int], later: int, data: st.DataObject
) -> None:
    # Given a store that was opened so high, so much later, and gave fences by its clock, in microseconds
    at, height, given = opened + later, opened, []
    for gap in gaps:
        height = max(height + 1, at + gap)
        given.append(height)
    now = Height("a", height)
    # Then what it gave in this run, or came to before, is no step back
    for highest in [opened, *given]:
        assert not lacks(Height("a", opened), at / 1e6, now, Height("a", highest))
    # And what lies between, or above all, is; of another store nothing is
    lost = data.draw(st.integers(opened + 1, at - 1) if later > 1 else st.just(height + 1))
    for highest in (lost, height + 1):
        assert lacks(Height("a", opened), at / 1e6, now, Height("a", highest))
        assert not lacks(Height("a", opened), at / 1e6, now, Height("b", highest))


@given(st.dictionaries(st.text(), st.floats(0, 3 * KEPT), max_size=30))
def test_only_what_is_silent_for_long_is_forgotten(told_at: dict[str, float]) -> None:
    now = 3 * KEPT
    assert set(forgettable(told_at, now)) == {store for store, at in told_at.items() if now - at > KEPT}


def test_of_too_many_the_longest_silent_are_forgotten() -> None:
    told_at = {str(number): float(number) for number in range(MOST + 3)}
    assert forgettable(told_at, MOST) == ["0", "1", "2"]


def test_what_is_remembered_outside_is_of_one_directory_and_its_folder_does_not_grow(tmp_path: Path) -> None:
    heights = {"queue.db": Height("a", 1 << 52)}
    one, other = RememberedHeights(tmp_path, tmp_path / "one"), RememberedHeights(tmp_path, tmp_path / "other")
    assert one.read() == {}
    one.write(heights, wall=0.0)
    assert (one.read(), other.read()) == (heights, {})
    # When nobody told of it for long, then somebody else forgets it
    (file,) = (tmp_path / FOLDER).iterdir()
    os.utime(file, (1.0, 1.0))
    other.write(heights, wall=KEPT + 2.0)
    assert (one.read(), other.read()) == ({}, heights)


def test_a_file_that_is_none_remembers_nothing(tmp_path: Path) -> None:
    one = RememberedHeights(tmp_path, tmp_path / "one")
    one.write({}, wall=0.0)
    (file,) = (tmp_path / FOLDER).iterdir()
    for text in ("", "[]", "7", '{"queue.db": 5}', '{"queue.db": ["a", "b"]}', '{"queue.db": [1, 2, 3]}', "\xff"):
        file.write_bytes(text.encode("latin-1"))
        assert one.read() == {}
