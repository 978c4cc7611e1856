"""Trees of jobs, as both clients begin them: nothing is asked of a gateway yet."""

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
        """A job of this type: a container of items that `function` handles alike. `then` and `gather` say what comes
        after it, `add` and `add_many` fill it, `seal` says that nothing more will come.

        key          no two jobs of a type have the same, until the first is forgotten
        policy       what a failed item does: continue (default), fail_tree, or threshold: it fails the tree once more
                     than `most_failed` items have failed
        events       of item_succeeded, item_failed and job_completed those that are told of in streams of the log, such
                     as `jobs.item_failed`; default: none
        on_done      who is told, at least once, when it is over: a function, which gets the event as its argument, or
                     an https URL, where the gateway sends such (`callbacks` in gateway.yaml)
        name, final, priority, collection, tenant  as of `then`
        """
        return self.chain(type, function, **options)

    def chain(self, type: str, /, *functions: Function[..., Any] | str, **options: Any) -> J:
        """A job of each function, the result of one being the argument of the next: seen and controlled as one."""
        if not functions:
            raise InvalidRequest("a chain of no function: expected one or more")
        draft, root = draft_of(type, functions, **options)
        return self._make_job(self, draft.id, draft, root.name, None)

    def map_reduce(
        self, type: str, map: Function[..., Any] | str, reduce: Function[..., Any] | str, /, **options: Any
    ) -> J:
        """A job of `map`, and one of `reduce` that gets the list of all its results. Whose the tree is, and how urgent,
        both are."""
        draft, root = draft_of(type, [map], **options)
        root.gather(reduce, **{name: options[name] for name in OF_EACH_JOB if name in options})
        return self._make_job(self, draft.id, draft, root.name, None)

    def known_job(self, id: str) -> J:
        """A job that was made before, by its id."""
        return self._make_job(self, id, None, "", None)

    def job_of(self, run: Context, /) -> J:
        """The job whose item this run has, from inside its function. What it adds there (to the same job, or `to=` one
        that comes after it, sealed or not) is refused once the run has lost its item, and another attempt that makes
        the same additions in the same order adds nothing again."""
        return self._make_job(self, "", None, "", run)
