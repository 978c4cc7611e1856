"""Levels: the usual ones, and those that somebody names."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.model.errors import ConfigError, InvalidRequest
from tailrace.model.priority import DEFAULT_PRIORITY, HIGHEST, LOWEST, MOST_LEVELS, USUAL, VARIABLE, Priority, levels_of

NAMES = st.lists(st.from_regex(r"[a-z][a-z0-9_]{0,30}", fullmatch=True), min_size=2, max_size=MOST_LEVELS, unique=True)


def test_four_are_usual() -> None:
    assert [each.label for each in Priority] == ["interactive", "user_visible", "eventual", "reporting"]
    assert (HIGHEST, DEFAULT_PRIORITY, LOWEST) == (0, 2, 3)
    assert levels_of(USUAL).names == [each.label for each in Priority]


@given(NAMES, st.data())
def test_what_is_named_is_had_in_its_order(names: list[str], data: st.DataObject) -> None:
    default = data.draw(st.integers(0, len(names) - 1))
    between = data.draw(st.sampled_from([",", ", ", " ,\t"]))
    star = data.draw(st.sampled_from(["*", " *"]))
    text = between.join(name + star * (number == default) for number, name in enumerate(names))
    assert levels_of(text) == (names, default)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a", "names 1 levels: expected 2 to 16"),
        ("a*, " + ", ".join(f"b{number}" for number in range(16)), "names 17 levels"),
        ("a, b", "0 levels with a star: put one behind"),
        ("a*, b*", "2 levels with a star"),
        ("a*, a", "names the level 'a' twice"),
        ("a*,,b", "names the level ''"),
        ("a*, B", "names the level 'B': expected small letters"),
        ("a*, b c", "names the level 'b c'"),
        ("a*, __doc__", "names the level '__doc__'"),
        ("a*, é", "names the level 'é'"),
        ("a**, b", "names the level 'a*'"),
        ("a*, " + "b" * 1000, "a level of 1000 characters: at most 40"),
    ],
)
def test_what_names_none_is_refused_with_the_variable(text: str, why: str) -> None:
    with pytest.raises(ConfigError) as refused:
        levels_of(text)
    assert VARIABLE in str(refused.value) and why in str(refused.value)


@pytest.mark.parametrize("wrong", ["urgent", "", "x" * 10_000, "\ud800", 4, -1])
def test_a_level_that_there_is_not_is_refused_with_those_that_there_are(wrong: str | int) -> None:
    with pytest.raises(
        InvalidRequest, match="expected one of interactive, user_visible, eventual, reporting"
    ) as refused:
        Priority.parse(wrong)
    assert len(str(refused.value)) < 300


def test_a_name_that_somebody_with_other_levels_wrote_is_the_default() -> None:
    assert Priority.stored("reporting") is Priority.REPORTING
    assert Priority.stored("checkout") is DEFAULT_PRIORITY


def test_a_process_has_those_of_its_environment() -> None:
    code = (
        "from tailrace import Priority; from tailrace.model.priority import *; from tailrace.gateway.config import *;"
        "print([p.label for p in Priority], DEFAULT_PRIORITY.label, LOWEST.label);"
        "levels = ServiceLevels.model_validate({'checkout': {'wait': 9}, 'archive': {'start': 7}});"
        "print([level.waited for level in levels.rule().values()], levels.objectives()['archive'])"
    )
    environment = {**os.environ, VARIABLE: "checkout, page, mail*, report, archive"}
    ran = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    levels, rules = ran.stdout.splitlines()
    assert levels == "['checkout', 'page', 'mail', 'report', 'archive'] mail archive"
    assert (
        rules == "[9.0, 1020.0, 9000.0, 9000.0, 25200.0] Objective(start=7.0, start_share=0.95, accepted_share=0.999)"
    )
