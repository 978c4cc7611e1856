"""Dead letters that an operator redrives, in worlds in which something befalls it."""

from tailrace.testing.simulation.plans import plan_of
from tailrace.testing.simulation.scenarios_redrives import REDRIVEN
from tailrace.testing.simulation.story import Story


def test_what_is_redriven_goes_on_where_it_died() -> None:
    # Given items that die twice, and an operator who redrives them all three times
    # When the story is told
    story = Story(REDRIVEN)
    told = story.tell()
    # Then each became two workloads in turn, the last of which succeeded; the third request found none
    assert told.wrong == []
    assert told.happened["letters redriven"] == 2 * len(REDRIVEN.items)
    lives = [each.executions[0].how for each in story.journal.stories.values()]
    assert sorted(lives) == ["fatal"] * 12 + ["ok"] * 6


def test_random_worlds_have_operators_where_no_file_is_put_back() -> None:
    plans = [plan for plan in map(plan_of, range(200)) if plan.redrives]
    assert 10 < len(plans) < 40
    assert not any(fault.kind == "restore" for plan in plans for fault in plan.faults)
    assert all(plan.gateways for plan in plans)
    assert any(redrive.once for plan in plans for redrive in plan.redrives)
