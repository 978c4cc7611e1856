"""Each known mistake is found in a world made for it, where nothing is wrong without the mistake."""

import pytest

from tailrace.testing.simulation.bugs import BUGS, planted
from tailrace.testing.simulation.plan import Plan
from tailrace.testing.simulation.scenarios import SCENARIOS as FIRST
from tailrace.testing.simulation.scenarios_detached import SCENARIOS as FIFTH
from tailrace.testing.simulation.scenarios_order import OTHERS
from tailrace.testing.simulation.scenarios_order import SCENARIOS as SECOND
from tailrace.testing.simulation.scenarios_schedules import SCENARIOS as FOURTH
from tailrace.testing.simulation.scenarios_several import SCENARIOS as THIRD
from tailrace.testing.simulation.story import Story

SCENARIOS = FIRST | SECOND | THIRD | FOURTH | FIFTH
WORLDS = {id(plan): plan for plans in [*SCENARIOS.values(), OTHERS] for plan in plans}


def test_every_bug_has_its_worlds_and_there_are_enough() -> None:
    assert set(SCENARIOS) == set(BUGS)
    assert len(BUGS) >= 60


@pytest.mark.parametrize("plan", WORLDS.values(), ids=range(len(WORLDS)))
def test_without_a_bug_nothing_is_wrong(plan: Plan) -> None:
    assert Story(plan).tell().wrong == []


@pytest.mark.parametrize("name", sorted(BUGS))
def test_a_planted_bug_is_found(name: str) -> None:
    with planted(name):
        assert any(Story(plan).tell().wrong for plan in SCENARIOS[name]), f"{name}: nothing was wrong"
