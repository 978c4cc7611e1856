"""The rules of jobs, without a store: arguments, shapes, next steps, feedings."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from tailrace.gateway.rules.job_arguments import argument_for
from tailrace.model.errors import InvalidRequest
from tailrace.model.function_spec import FunctionSpec
from tailrace.model.job import JobSpec
from tailrace.stores.jobs.rules.ending import JobStands, JobStep, ends_tree, next_step
from tailrace.stores.jobs.rules.feeding import NoList, TooLarge, around, elements, list_of, payload_of
from tailrace.stores.jobs.rules.item_state import ItemState
from tailrace.stores.jobs.rules.overdue import overdue
from tailrace.stores.jobs.rules.redriving import ItemStands, why_not
from tailrace.stores.jobs.rules.refusals import nameless
from tailrace.stores.jobs.rules.tree import depths, is_final


def spec(required: list[str], *others: str) -> FunctionSpec:
    schema: dict[str, Any] = {"properties": {name: {} for name in (*required, *others)}, "required": required}
    return FunctionSpec("f", arguments=json.dumps(schema))


def test_a_result_is_the_first_argument_that_is_needed_or_the_one_that_is_named() -> None:
    plain, named = JobSpec("b", "f", ("a",)), JobSpec("b", "f", ("a",), argument="y")
    assert argument_for("job b", plain.argument, spec(["x"], "y")) == "x"
    assert argument_for("job b", plain.argument, spec([], "x", "y")) == "x"
    assert argument_for("job b", named.argument, spec([], "x", "y")) == "y"
    assert argument_for("job b", plain.argument, FunctionSpec("f")) == ""
    for job, function, why in (
        (named, spec(["x"], "y"), "needs x too"),
        (plain, spec(["x", "z"]), "needs z too"),
        (named, spec(["x"]), "has no argument 'y'"),
        (plain, spec([]), "takes no argument"),
    ):
        with pytest.raises(InvalidRequest, match=why):
            argument_for("job b", job.argument, function)


def test_a_job_is_sealed_by_its_parents_and_complete_when_nothing_pends() -> None:
    for sealed, pending, complete, has_parents, open_parents, gathers, ending in itertools.product(
        (False, True), (0, 2), (False, True), (False, True), (0, 1), (False, True), (False, True)
    ):
        step = next_step(JobStands(sealed, pending, complete, has_parents, open_parents, gathers, ending))
        if complete:
            assert step is JobStep.NOTHING
        elif step is JobStep.COMPLETE:
            assert sealed
            assert not pending
            assert not open_parents
        elif step in (JobStep.SEAL, JobStep.GATHER_AND_SEAL):
            assert not sealed
            assert ending or (has_parents and not open_parents)
            assert (step is JobStep.GATHER_AND_SEAL) == (gathers and not ending)
        else:
            assert pending or not sealed or open_parents


def test_only_an_item_that_failed_is_tried_again_in_a_tree_that_goes_on() -> None:
    assert why_not(ItemStands(ItemState.FAILED, complete=False, ending=False), "job-1") == ""
    for state, complete, ending in (
        (ItemState.PENDING, False, False),
        (ItemState.SUCCEEDED, False, False),
        (ItemState.FAILED, True, False),
        (ItemState.FAILED, False, True),
    ):
        assert why_not(ItemStands(state, complete, ending), "job-1")


def test_the_numbers_of_states_are_those_that_stand_in_stores() -> None:
    assert [*ItemState] == [0, 1, 2]
    assert f"{ItemState.FAILED}" == "2", "statements are written with them"


def test_a_job_that_is_not_there_is_told_of_its_tree() -> None:
    assert str(nameless("job-1", "mail", "split, send")) == "the tree 'job-1' has no job 'mail': it has split, send"


def test_a_policy_says_when_failures_end_a_tree() -> None:
    assert not ends_tree("continue", 0, 1000)
    assert [ends_tree("fail_tree", 5, failed) for failed in (0, 1)] == [False, True]
    assert [ends_tree("threshold", 2, failed) for failed in (2, 3)] == [False, True]


def test_a_payload_is_bytes_around_bytes_within_its_bound() -> None:
    prefix, suffix = around('a "b"')
    assert json.loads(payload_of(prefix, b"[1]", suffix, 100, "b")) == {'a "b"': [1]}
    assert around("") == (b"", b"")
    assert payload_of(b"", b"12", b"", 2, "b") == b"12"
    with pytest.raises(TooLarge, match="its result has 3 bytes"):
        payload_of(b"", b"123", b"", 2, "b")


def test_a_list_is_taken_apart_and_put_together_unread() -> None:
    assert elements(b'[1, "\xc3\xa4", {"x": [2]}]', "b") == [b"1", b'"\xc3\xa4"', b'{"x": [2]}']
    assert elements(b"null", "b") == elements(b"[]", "b") == []
    assert list_of([b"1", b"{}"]) == b"[1,{}]"
    assert list_of([]) == b"[]"
    for odd in (b"7", b"{}", b"[1", b"", b"\xff"):
        with pytest.raises(NoList):
            elements(odd, "b")


def test_the_last_jobs_are_final_unless_one_says_otherwise() -> None:
    jobs = [JobSpec("a", "f"), JobSpec("b", "f", ("a",)), JobSpec("c", "f", ("a", "b"), final=False)]
    assert [is_final(job, jobs) for job in jobs] == [False, False, False]
    assert is_final(JobSpec("d", "f", ("b",)), jobs)
    assert depths(jobs) == {"a": 0, "b": 1, "c": 2}


def test_a_tree_is_open_for_too_long_by_its_age_unless_its_clock_was_not_set() -> None:
    day, now = 86_400_000_000, 1_800_000_000_000_000
    since, before, why = overdue(now, 2.5 * 86_400)
    assert before == now - 2.5 * day
    assert 0 < since < before
    assert why == "it was open for longer than 2d12h (job_max_age of stores.yaml)"
    assert overdue(now, 100 * 365 * 86_400.0).before < since  # an age beyond all clocks
