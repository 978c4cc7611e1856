"""Content in pieces → lines, the same wherever the pieces' borders are."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from tailrace.tailers.rules.text_lines import Lines, lines_of

LONGEST = 5

contents = st.lists(
    st.sampled_from([b"", b"a", b"\xff\x00", b"\r", b"ab\r", b"12345", b"123456", b"x" * 40]), max_size=12
).flatmap(lambda lines: st.sampled_from([b"\n".join(lines), b"\n".join(lines) + b"\n"]))


def pieces_of(content, borders):
    cuts = sorted({0, len(content), *(border % (len(content) + 1) for border in borders)})
    return [content[start:end] for start, end in pairwise(cuts)]


def told(content, borders=(), offset=0):
    """Lines with their places, and lines that are too long."""
    lines = Lines(LONGEST, offset)
    runs = [run for piece in pieces_of(content, borders) for run in lines.feed(piece)] + lines.finish()
    return runs, lines


def expected(content):
    """Lines by the book, each with whether it is too long."""
    return [(line, len(line) > LONGEST) for line in content.split(b"\n") if line not in (b"", b"\r")]


@given(contents, st.lists(st.integers(0, 1000), max_size=8))
def test_borders_change_nothing(content, borders):
    runs, _ = told(content, borders)
    found = []
    for run in runs:
        if run.too_long:
            found.append((content[run.offset : run.offset + run.too_long], True))
        found.extend((line, False) for line in run.lines)
    assert found == expected(content)


@given(contents, st.lists(st.integers(0, 1000), max_size=8))
def test_a_run_is_found_again_by_its_bytes(content, borders):
    runs, _ = told(content, borders)
    end = 0
    for run in runs:
        assert run.offset >= end and bool(run.lines) != bool(run.too_long)
        end = run.offset + run.length
        if run.lines:
            assert lines_of(content[run.offset : end]) == run.lines
    assert end <= len(content)


@given(contents, st.lists(st.integers(0, 1000), max_size=8), st.data())
def test_one_who_goes_on_behind_any_run_finds_the_rest(content, borders, data):
    runs, _ = told(content, borders)
    if not runs:
        return
    done = data.draw(st.integers(0, len(runs) - 1))
    start = runs[done].offset + runs[done].length
    rest, _ = told(content[start:], borders, start)
    before = [line for run in runs[: done + 1] for line in run.lines or [run.too_long]]
    after = [line for run in rest for line in run.lines or [run.too_long]]
    assert before + after == [len(line) if long else line for line, long in expected(content)]


@given(st.lists(st.binary(min_size=1, max_size=50), max_size=30))
def test_no_more_than_a_line_is_kept(pieces):
    lines = Lines(LONGEST)
    for piece in pieces:
        lines.feed(piece.replace(b"\n", b"."))
        assert sum(map(len, lines._rest)) <= LONGEST + 1


def test_the_place_of_what_is_not_whole_is_known():
    lines = Lines(LONGEST)
    assert [run.lines for run in lines.feed(b"a\n\nb\nc")] == [[b"a", b"b"]]
    assert lines.offset == 5
