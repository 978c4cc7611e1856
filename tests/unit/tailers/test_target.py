"""The target of a stream tailer of one function, while nothing may be pushed."""

from __future__ import annotations

from tailrace.model.function_spec import FunctionSpec
from tailrace.tailers.config import TailerConfig
from tailrace.tailers.mapping.target import Target
from tailrace.tailers.rules.credit import Credit


def target(function: str) -> Target:
    config = {"name": "words", "source": {"kind": "log", "stream": "words"}, "function": function}
    return Target(TailerConfig.model_validate(config), parked=False)


def test_a_function_that_nobody_runs_is_named_with_the_one_that_may_be_meant() -> None:
    # Given workers with two functions
    functions = {name: FunctionSpec(name) for name in ("count_words", "greet")}
    # When the file of a tailer has a letter wrong, or names another one
    mistyped = target("cuont_words").why_no_credit(Credit(), functions)
    other = target("index").why_no_credit(Credit(), functions)
    # Then the first is asked about, and of the second it is said that nobody runs it
    assert mistyped == "no worker runs the function \"cuont_words\"; did you mean 'count_words'?"
    assert other == 'no worker runs the function "index"'
