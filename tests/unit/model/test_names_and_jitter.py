"""Names as PostgreSQL reads their rule, and pauses with chance in them."""

from __future__ import annotations

import re

from hypothesis import example, given
from hypothesis import strategies as st

from tailrace.model.jitter import jittered, jittered_longer, jittered_shorter
from tailrace.model.name import NAME_PATTERN, NAME_PATTERN_SQL


@given(st.text("aZ09_.-/:\\ \nÄ'", max_size=6))
@example("a-b")
@example("a\\b")
def test_a_database_takes_the_names_that_everybody_takes(text: str) -> None:
    assert (re.fullmatch(NAME_PATTERN, text) is None) == (re.fullmatch(NAME_PATTERN_SQL, text) is None)


@given(st.floats(0, 1, exclude_max=True), st.floats(0, 1000))
def test_each_spread_stays_on_its_side_of_the_pause(drawn: float, pause: float) -> None:
    assert pause * 0.5 <= jittered_shorter(pause, lambda: drawn) <= pause
    assert pause <= jittered_longer(pause, lambda: drawn) <= pause * 1.5
    assert pause * 0.5 <= jittered(pause, lambda: drawn) <= pause * 1.5
