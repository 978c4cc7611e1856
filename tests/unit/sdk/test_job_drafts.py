"""Drafts of trees: a client is given a function or its name; anything else is refused before a request is made."""

from __future__ import annotations

from typing import Any

import pytest

from tailrace.model.errors import InvalidRequest
from tailrace.sdk.job_drafts import draft_of
from tailrace.sdk.job_trees import JobTrees


class Hostile(str):
    """A text that says something else of itself."""

    def __str__(self) -> str:
        raise RuntimeError("hostile")


@pytest.mark.parametrize("given", [7, None, object(), print, ["f"]])
def test_what_is_no_function_is_refused_and_says_what_was_expected(given: Any) -> None:
    with pytest.raises(InvalidRequest, match=r"cannot make on_done of .*expected a function"):
        draft_of("t", ["f"], on_done=given)
    with pytest.raises(InvalidRequest, match=r"cannot make a job of .*expected a function"):
        draft_of("t", [given])


def test_a_subclass_of_text_is_taken_as_its_text() -> None:
    spec = draft_of(Hostile("t"), ["f"], key=Hostile("k"), on_done=Hostile("g"))[0].spec()
    assert [(type(each), each + "") for each in (spec.type, spec.key, spec.on_done)] == [
        (str, "t"),
        (str, "k"),
        (str, "g"),
    ]


@pytest.mark.parametrize("given", [5, None, "item_failed", [1], {"item_failed": True}])
def test_what_is_no_list_of_events_is_refused_in_words(given: Any) -> None:
    with pytest.raises(InvalidRequest, match=r"events is .*expected a list"):
        draft_of("t", ["f"], events=given)


@pytest.mark.parametrize("given", ["3", 2.5, None, True])
def test_what_is_no_number_of_failures_is_refused_in_words(given: Any) -> None:
    with pytest.raises(InvalidRequest, match=r"max_failures_per_item is .*expected a whole number"):
        draft_of("t", ["f"], max_failures_per_item=given)


def test_the_jobs_of_a_map_reduce_are_of_one_tenant_and_as_urgent_as_each_other() -> None:
    # Given a map_reduce of which is said whose it is and how urgent
    said = {"tenant": "acme", "priority": "interactive", "collection": "bills", "max_failures_per_item": 3}
    trees = JobTrees(lambda client, id, draft, root, run: draft)
    # When it is drawn
    draft = trees.map_reduce("bill", "charge", "add_up", key="k", **said)
    # Then that holds for what gathers, too
    assert draft is not None
    first, last = [(job.tenant, job.priority, job.collection, job.max_failures_per_item) for job in draft.spec().jobs]
    assert first == last
    assert (last[0], last[2:]) == ("acme", ("bills", 3))
