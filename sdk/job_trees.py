"""Trees of jobs, as both clients begin them, before anything is asked of a gateway."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ..model.errors import InvalidRequest
from .job_drafts import OF_EACH_JOB, Draft, draft_of

if TYPE_CHECKING:
    from .context import Context
    from .function import Function

J = TypeVar("J")


class JobTrees(Generic[J]):
    """The part of a client that begins jobs. `make` is the class of its jobs."""

    def __init__(self, make: Callable[[Any, str, Draft | None, str, Context | None], J]) -> None:
        self._make_job = make

    def job(self, type: str, function: Function[..., Any] | str, /, **options: Any) -> J:
        """Begins a job of this type: a container of items that `function` handles alike. `then` and `gather` draw the
        jobs after it, `add` and `add_many` fill it, `seal` says that nothing more will come.

        key          a text that no other job of the type has, until this one is forgotten; default: none
        policy       the effect of a failed item: continue (default), fail_tree, or threshold: the tree fails once more
                     than `most_failed` items have failed
        events       those of item_succeeded, item_failed and job_completed that go to streams of the log, such as
                     `jobs.item_failed`; default: none
        on_done      a function or an https URL that is told when the tree is over, at least once. A function gets the
                     event as its argument; the gateway must allow URLs (`callbacks` in gateway.yaml)
        name, final, priority, collection, tenant, max_failures_per_item  as in `then`
        """
        return self.chain(type, function, **options)

    def chain(self, type: str, /, *functions: Function[..., Any] | str, **options: Any) -> J:
        """Begins a job for each function, the result of one being the argument of the next: one tree."""
        if not functions:
            raise InvalidRequest("a chain of no function: expected one or more")
        draft, root = draft_of(type, functions, **options)
        return self._make_job(self, draft.id, draft, root.name, None)

    def map_reduce(
        self, type: str, map: Function[..., Any] | str, reduce: Function[..., Any] | str, /, **options: Any
    ) -> J:
        """Begins a job of `map`, and one of `reduce` that gets the list of all its results. Priority, collection,
        tenant and max_failures_per_item hold for both."""
        draft, root = draft_of(type, [map], **options)
        root.gather(reduce, **{name: options[name] for name in OF_EACH_JOB if name in options})
        return self._make_job(self, draft.id, draft, root.name, None)

    def known_job(self, id: str) -> J:
        """The job that was made before and has this id."""
        return self._make_job(self, id, None, "", None)

    def job_of(self, run: Context, /) -> J:
        """The job of the item that this run has, for use inside its function. Additions (to the same job, or `to=` one
        after it, sealed or not) are refused once the run has lost its item; another attempt that makes the same
        additions in the same order adds nothing again."""
        return self._make_job(self, "", None, "", run)
