"""The frontier against a set: it never passes an unsettled position, and it encodes exactly its knowledge."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.model.errors import InvalidRequest
from tailrace.tailers.rules.frontier import Frontier, decode, encode

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("read"), st.lists(st.integers(0, 3), min_size=1, max_size=20)),
        st.tuples(st.just("settle"), st.lists(st.integers(-5, 80), max_size=20)),
        st.tuples(st.just("range"), st.tuples(st.integers(-5, 80), st.integers(-5, 80))),
        st.tuples(st.just("restart"), st.none()),
    ),
    max_size=40,
)


@given(STEPS, st.integers(0, 1000))
def test_against_a_set(steps, start):
    frontier, unsettled, settled = Frontier(start), set(), set()
    for step, argument in steps:
        if step == "read":
            positions, at = [], frontier.end
            for gap in argument:
                at += gap
                positions.append(at)
                at += 1
            first = frontier.end
            run = frontier.read(positions)
            fresh = positions if run is None else [positions[index] for index in run]
            assert fresh == [position for position in positions if position not in settled]
            unsettled |= set(fresh)
            settled |= set(range(first, frontier.end)) - set(positions)  # gaps hold nothing, now or later
        elif step == "settle":
            wanted = [start + offset for offset in argument]
            frontier.settle(wanted)
            settled |= unsettled & set(wanted)
            unsettled -= set(wanted)
        elif step == "range":
            wanted = range(start + argument[0], start + argument[1] + 1)
            if wanted:
                frontier.settle_range(wanted[0], wanted[-1])
            settled |= unsettled & set(wanted)
            unsettled -= set(wanted)
        else:
            frontier.advance()
            frontier = Frontier(frontier.position, frontier.encode())
            unsettled = set()
        frontier.advance()
        assert frontier.unsettled == len(unsettled)
        assert frontier.position == (min(unsettled) if unsettled else frontier.end)
        for position in range(start - 2, frontier.known + 2):
            assert frontier.is_settled(position) == (position < start or position in settled)


def test_absent_positions_are_settled_at_once():
    frontier = Frontier(0)
    assert frontier.read([1, 3], absent=[0, 2, 4]) is None
    frontier.settle([1, 3])
    assert frontier.advance() and frontier.position == 5


def test_what_was_read_before_is_not_run_again():
    frontier = Frontier(0)
    assert frontier.read([0, 1, 2]) is None
    assert frontier.read([1, 2, 3]) == [2]


@given(st.lists(st.booleans(), max_size=300))
def test_encoding_is_inverse(bits):
    raw = bytes(bits)
    assert decode(encode(raw)) == raw.rstrip(b"\x00")


def test_encoding_stays_small():
    assert len(encode(b"\x00" + b"\x01" * 100_000)) < 200
    assert len(encode(b"\x00\x01" * 50_000)) < 13_000


@pytest.mark.parametrize("text", [b"\x02abc", b"\x01abc"])
def test_an_unknown_encoding_is_refused(text):
    with pytest.raises(InvalidRequest, match="settled positions"):
        decode(text)


@given(st.integers(0, 20), st.sets(st.integers(0, 40)), st.integers(0, 30), st.integers(0, 60), st.integers(0, 60))
def test_what_was_lost_is_what_no_run_had_settled(position, ahead, read, first, last):
    bits = bytes(index in ahead for index in range(41))
    frontier = Frontier(position, encode(bits))
    frontier.read(range(position, position + read))
    frontier.read([])
    lost = frontier.unread(first, last)
    settled = {position + index for index in ahead}
    assert [p for low, high in lost for p in range(low, high + 1)] == [
        p for p in range(max(first, frontier.end), last + 1) if p not in settled
    ]


def test_a_skip_takes_no_memory_and_forgets_nothing_unsettled():
    frontier = Frontier(0)
    frontier.skip(10**12)
    assert (frontier.position, frontier.end, frontier.span) == (10**12 + 1, 10**12 + 1, 0)
    frontier.read([10**12 + 1, 10**12 + 2])
    frontier.settle([10**12 + 1])
    frontier.skip(10**12 + 9)
    frontier.skip(5)
    assert (frontier.position, frontier.end) == (10**12 + 2, 10**12 + 10)
    frontier.settle([10**12 + 2])
    frontier.advance()
    assert frontier.position == frontier.end


@given(st.sets(st.integers(0, 60)), st.integers(0, 70), st.integers(0, 10), st.integers(0, 80))
def test_what_was_unsettled_below_the_end_of_what_was_handed_out(settled, start, most, end):
    frontier = Frontier(start)
    frontier.read(list(range(start, start + 61)))
    frontier.settle([start + one for one in settled])
    frontier.advance()
    again = Frontier(frontier.position, frontier.encode())
    unsettled = [one for one in range(start, start + end) if one - start not in settled]
    assert again.unsettled_below(start + end, most) == unsettled[:most]
