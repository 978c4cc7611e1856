"""The outlook of a tree of jobs, and its picture."""

from __future__ import annotations

import xml.etree.ElementTree as Xml

from hypothesis import given
from hypothesis import strategies as st

from tailrace.gateway.commands.job_picture import picture
from tailrace.gateway.rules.job_outlook import outlook
from tailrace.model.job import JobStatus, TreeStatus


def job(name: str, *parents: str, pending: int = 0, succeeded: int = 0, failed: int = 0, **said: object) -> JobStatus:
    done = {"pending": pending, "succeeded": succeeded, "failed": failed}
    return JobStatus(name, name, [*parents], False, False, **done, **said)  # type: ignore[arg-type]


def tree(*jobs: JobStatus, state: str = "running") -> TreeStatus:
    return TreeStatus("job-1", "law", "", state, "continue", "", 1000.0, jobs=[*jobs])


def test_what_was_made_so_far_is_the_measure_of_what_is_to_come() -> None:
    # Given a hundred items, a quarter of which were taken apart into four each, of which half are done
    found = outlook(
        tree(job("a", pending=75, succeeded=25), job("b", "a", pending=50, succeeded=50, each=True)), 1075.0
    )
    # Then three hundred more come, and all of it takes as long for each item as until now
    assert found.left == 75 + 50 + 300
    assert found.seconds == 425.0
    assert found.path == ("a", "b")


def test_a_gather_is_one_item_and_a_tree_that_is_over_has_none() -> None:
    jobs = (job("a", pending=4), job("b", "a"), job("c", "b", gather=True))
    assert outlook(tree(*jobs), 1001.0) == (9, None, ("a", "b", "c"))
    assert outlook(tree(*jobs, state="cancelled"), 1001.0) == (0, None, ())
    assert outlook(tree(*jobs, state="paused"), 1001.0).seconds is None


def test_the_way_that_is_waited_for_is_the_longest_behind_the_job_with_most_to_do() -> None:
    jobs = (
        job("root", succeeded=9, complete_at=5.0),
        job("few", "root", pending=1, succeeded=8),
        job("many", "root", pending=7, succeeded=2),
        job("side", "many"),
        job("long", "many"),
        job("end", "few", "long", gather=True),
    )
    assert outlook(tree(*jobs), 2000.0).path == ("many", "long", "end")


@given(
    st.lists(
        st.tuples(st.integers(0, 50), st.integers(0, 50), st.integers(0, 50), st.booleans(), st.integers(0, 9)),
        min_size=1,
        max_size=12,
    ),
    st.text(min_size=1, max_size=30),
)
def test_any_tree_has_an_outlook_and_a_picture(shapes: list[tuple[int, int, int, bool, int]], name: str) -> None:
    jobs = []
    for at, (pending, succeeded, failed, gather, parent) in enumerate(shapes):
        parents = [jobs[parent % at].name] if at else []
        counts = {"pending": pending, "succeeded": succeeded, "failed": failed}
        jobs.append(job(f"{name}{at}", *parents, **counts, gather=gather and at > 0))  # type: ignore[arg-type]
    found = outlook(tree(*jobs), 1100.0)
    assert found.left >= sum(each.pending for each in jobs) or any(each.gather for each in jobs)
    drawn = Xml.fromstring(picture(tree(*jobs)))
    boxes = [each for each in drawn if each.tag.endswith("}g")]
    assert len(boxes) == len(jobs)
