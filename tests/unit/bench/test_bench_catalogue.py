"""The scenarios that `tailrace bench` knows by name."""

import inspect
import re
from importlib import import_module

import pytest

from tailrace.bench.catalogue import FORMS, on_engine
from tailrace.bench.run import BenchOptions, main
from tailrace.model.errors import InvalidRequest


@pytest.mark.parametrize("name", FORMS)
def test_each_is_written_where_it_says_and_takes_what_it_is_given(name: str) -> None:
    # Given a scenario of the catalogue
    form = FORMS[name]
    module, _, function = form.where.partition(":")

    # When it is looked up, then it is a coroutine of a folder and a size, and of an engine where it has several
    scenario = getattr(import_module(f"tailrace.bench.{module}"), function)
    assert inspect.iscoroutinefunction(scenario)
    _, size, *rest = inspect.signature(scenario).parameters.values()
    assert size.annotation == form.unit.__name__
    assert {"progress"} <= {each.name for each in rest}
    assert ("engine" in {each.name for each in rest}) == bool(form.engine)
    assert ("client" in {each.name for each in rest}) == form.clients


def test_an_engine_for_a_scenario_that_has_one_alone_is_refused() -> None:
    # Given a scenario of the embedded log, when another engine is asked for
    with pytest.raises(InvalidRequest) as refused:
        on_engine("poison", "redis", "kafka-python")

    # Then the ones that have several are named
    assert "queue" in str(refused.value)
    assert "poison" in str(refused.value)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("strem", "did you mean 'stream'"),
        ("redis_stream_fault", "'redis_stream_faults'"),
        ("?", "restarts, kafka_faults"),
    ],
)
def test_a_scenario_that_there_is_not_is_refused_with_the_one_that_was_meant(name: str, hint: str) -> None:
    # Given a name that no scenario has, when it is asked for, then what was meant is named, else all there are
    with pytest.raises(InvalidRequest, match=f"unknown scenario '{re.escape(name)}'") as refused:
        main(BenchOptions(name))
    assert hint in str(refused.value)
