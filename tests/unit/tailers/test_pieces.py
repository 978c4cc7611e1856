"""Pieces: all items once, in order, none of them too large unless by itself."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from tailrace.tailers.rules.pieces import pieces


@given(st.lists(st.integers(0, 30)), st.integers(1, 40), st.integers(1, 5))
def test_each_item_is_in_one_piece_and_no_piece_is_too_large(sizes: list[int], most: int, items: int) -> None:
    found = list(pieces(sizes, most, items))
    assert [index for piece in found for index in piece] == list(range(len(sizes)))
    for piece in found:
        assert 1 <= len(piece) <= items
        assert len(piece) == 1 or sum(sizes[index] for index in piece) <= most
    # And none is smaller than it need be
    for one, following in pairwise(found):
        assert len(one) == items or sum(sizes[index] for index in one) + sizes[following[0]] > most
