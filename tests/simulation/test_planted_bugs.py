"""Each known mistake is found in a world made for it, where nothing is wrong without the mistake."""

from importlib import import_module
from pathlib import Path

import pytest

from tailrace.testing import simulation
from tailrace.testing.simulation.bugs import BREACHES, BUGS, planted
from tailrace.testing.simulation.bugs.table import LAWS, stale
from tailrace.testing.simulation.hunt import kind_of
from tailrace.testing.simulation.plan import Plan
from tailrace.testing.simulation.scenarios_order import OTHERS
from tailrace.testing.simulation.story import Story

MADE = [
    import_module(f"{simulation.__name__}.{file.stem}")
    for file in sorted(Path(simulation.__file__ or "").parent.glob("scenarios*.py"))
]
#: The worlds in which each mistake is found, and the promise that finds it where only one does.
SCENARIOS: dict[str, list[Plan]] = {name: plans for module in MADE for name, plans in module.SCENARIOS.items()}
BY: dict[str, str] = {name: by for module in MADE for name, by in getattr(module, "BY", {}).items()}
WORLDS = {id(plan): plan for plans in [*SCENARIOS.values(), OTHERS] for plan in plans}


def test_every_bug_has_its_worlds_and_there_are_enough() -> None:
    assert set(SCENARIOS) == set(BUGS)
    assert len(BUGS) >= 70


def every_third(number: int) -> list[pytest.MarkDecorator]:
    """Marks of the worlds but every third: there are hundreds, and each takes half a second."""
    return [] if number % 3 == 0 else [pytest.mark.long(minutes=0.007)]


@pytest.mark.parametrize(
    "plan", [pytest.param(plan, id=str(n), marks=every_third(n)) for n, plan in enumerate(WORLDS.values())]
)
def test_without_a_bug_nothing_is_wrong(plan: Plan) -> None:
    assert Story(plan).tell().wrong == []


@pytest.mark.parametrize("name", sorted(BUGS))
def test_a_planted_bug_is_found(name: str) -> None:
    """A mistake that breaks a rule of the leases is found by the promise that it names (and perhaps by others); one
    that only one promise finds, by that alone."""
    by = BREACHES[name].by if name in BREACHES else ""
    with planted(name):
        if name in BY:
            (plan,) = SCENARIOS[name]
            found = {kind_of(line) for line in Story(plan).tell().wrong}
            assert found == {BY[name]} and by in ("", BY[name])
            return
        kinds = (kind_of(line) for plan in SCENARIOS[name] for line in Story(plan).tell().wrong)
        assert any(kind == by or not by for kind in kinds), f"{name}: nothing was wrong, or not {by or 'anything'}"


def test_every_rule_of_the_leases_is_broken_by_some_mistake() -> None:
    assert {breach.law for breach in BREACHES.values()} == set(LAWS)


def test_every_rule_of_the_leases_says_which_mistakes_break_it() -> None:
    assert not stale(), "run python -m tailrace.testing.simulation.bugs.table"
