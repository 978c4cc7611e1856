"""Gateways that spool while their store is away, and die as they do and as they bring it there."""

from tailrace.testing.simulation.plans import plan_of
from tailrace.testing.simulation.scenarios_spool import ALL_THE_TIME, DIES_FULL
from tailrace.testing.simulation.story import Story


def test_what_comes_while_the_store_is_away_is_spooled_and_arrives_in_order() -> None:
    # Given items of one key that come before the store goes, while it is away and as it is back
    # When the story is told
    story = Story(ALL_THE_TIME)
    told = story.tell()
    # Then some were spooled, and others were not; each ran once
    assert told.wrong == []
    assert 40 < told.happened["items spooled"] < 80
    assert sorted(each.n for each in story.journal.stories.values()) == [item.n for item in ALL_THE_TIME.items]


def test_a_gateway_that_dies_with_its_spool_brings_it_when_it_is_back() -> None:
    told = Story(DIES_FULL[0]).tell()
    assert told.wrong == []
    assert told.happened["items spooled"] >= 2


def test_random_worlds_have_gateways_that_spool_where_no_file_is_put_back() -> None:
    plans = [plan for plan in map(plan_of, range(200)) if plan.spools]
    assert 10 < len(plans) < 40
    assert all(plan.gateways for plan in plans)
    assert not any(fault.kind == "restore" for plan in plans for fault in plan.faults)
    assert {fault.host for plan in plans for fault in plan.faults if fault.what.startswith("spool: ")} >= {"gateway1"}
