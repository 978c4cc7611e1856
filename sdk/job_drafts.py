"""Drafts of trees: the jobs that a client draws with `then` and `gather` before it calls a gateway, and items made of
arguments."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from ..foundation.identity import whoami
from ..model.errors import InvalidRequest
from ..model.job import JobItem, JobSpec, TreeSpec
from ..model.priority import Priority
from . import job_calls
from .call import Call, called_by

if TYPE_CHECKING:
    from .function import Function

#: Options that each job of a tree has for itself.
OF_EACH_JOB = ("priority", "collection", "tenant", "max_failures_per_item")
#: A job of a tree, as an addition names it.
Target: TypeAlias = "Stage | Function[..., Any] | str"


class Stage:
    """One job of a tree that is being drawn, from which the jobs after it are drawn."""

    __slots__ = ("_draft", "name")

    def __init__(self, draft: Draft, name: str) -> None:
        self._draft = draft
        self.name = name

    def then(
        self,
        function: Function[..., Any] | str,
        *,
        name: str = "",
        argument: str = "",
        each: bool = False,
        final: bool | None = None,
        also: Sequence[Stage] = (),
        **options: Any,
    ) -> Stage:
        """Draws a job whose items are made of this one's results, one by one, as soon as each is there.

        function  the function that runs its items, or the name of one
        name      its name in the tree; default: the function's name
        argument  the parameter that gets a result; default: the function's first one
        each      whether a result is a list, of which each element becomes an item
        final     whether its results are the tree's; default: if nothing comes after it
        also      other jobs whose results it gets too
        options   priority (default eventual), collection, tenant, max_failures_per_item (default: its function's)
        """
        parents = (self.name, *(stage.name for stage in also))
        return self._draft.put(function, name, parents=parents, argument=argument, each=each, final=final, **options)

    def gather(
        self,
        function: Function[..., Any] | str,
        *,
        name: str = "",
        argument: str = "",
        final: bool | None = None,
        also: Sequence[Stage] = (),
        **options: Any,
    ) -> Stage:
        """Draws a job of one item, which gets the list of all results of this one (and of `also`) when they are
        complete. Options are those of `then`."""
        parents = (self.name, *(stage.name for stage in also))
        return self._draft.put(function, name, parents=parents, argument=argument, gather=True, final=final, **options)

    def __repr__(self) -> str:
        return f"<Stage {self.name} of {self._draft.id}>"


class Draft:
    """A tree that is being drawn; no gateway knows of it yet."""

    def __init__(
        self,
        type: str,
        key: str,
        policy: str,
        most_failed: int,
        on_done: Function[..., Any] | str = "",
        events: Sequence[str] = (),
    ) -> None:
        self._events = _events(events)
        self.id = job_calls.new_id()
        self._on_done = called_by(on_done, "on_done")
        self.made = False
        self._type, self._key, self._policy, self._most_failed = _plain(type), _plain(key), _plain(policy), most_failed
        self._jobs: list[JobSpec] = []
        self.functions: dict[str, Function[..., Any] | str] = {}

    def put(
        self,
        function: Function[..., Any] | str,
        name: str,
        *,
        priority: Priority | str | int | None = None,
        collection: str = "",
        tenant: str = "",
        **said: Any,
    ) -> Stage:
        """Adds a job to the drawing. Raises InvalidRequest when the tree is made already."""
        if self.made:
            raise InvalidRequest(
                f"the job {self.id} is made, and its tree is fixed: draw all of it before the first add"
            )
        most = said.get("max_failures_per_item", 0)
        if type(most) is not int:
            raise InvalidRequest(f"max_failures_per_item is {most!r:.200}: expected a whole number, such as 3")
        called = called_by(function, "a job")
        name = name or self._free(called)
        rank = None if priority is None else int(Priority.parse(priority))
        self._jobs.append(JobSpec(name, called, priority=rank, collection=collection, tenant=tenant, **said))
        self.functions[name] = function
        return Stage(self, name)

    def _free(self, called: str) -> str:
        """A name that no job has: the function's, with a number if it is taken."""
        number, name = 1, called
        while name in self.functions:
            number += 1
            name = f"{called}-{number}"
        return name

    def spec(self) -> TreeSpec:
        """The tree as a gateway is asked to make it."""
        about = (self._key, self._policy, self._most_failed)
        return TreeSpec(self.id, self._type, self._jobs, *about, whoami(), self._on_done, self._events)


def _events(events: Sequence[str]) -> tuple[str, ...]:
    listed = isinstance(events, Collection) and not isinstance(events, str | Mapping)
    if not listed or not all(isinstance(each, str) for each in events):
        raise InvalidRequest(f"events is {events!r:.200}: expected a list, such as ['item_failed', 'job_completed']")
    return tuple(dict.fromkeys(map(_plain, events)))


def _plain(text: str) -> str:
    """Plain text of a subclass of str, whatever its own methods say: messages carry nothing else."""
    return str.__str__(text) if isinstance(text, str) else text


class Given(NamedTuple):
    """The arguments of one item, with its keys."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    key: str
    dedupe_key: str


def item_of(function: Function[..., Any] | str, given: Any) -> JobItem:
    """Makes an item of a Call, of arguments by name (a mapping), of several (a tuple), or of one."""
    if isinstance(given, Call):
        call = given
    elif isinstance(given, Given):
        call = Call(function, *given.args, key=given.key, dedupe_key=given.dedupe_key, arguments=given.kwargs)
    elif isinstance(given, Mapping):
        call = Call(function, arguments=given)
    elif isinstance(given, tuple):
        call = Call(function, *given)
    else:
        call = Call(function, given)
    return JobItem(call.payload, _plain(call.key), _plain(call.dedupe_key))


def draft_of(
    type: str,
    functions: Sequence[Function[..., Any] | str],
    *,
    key: str = "",
    policy: str = "continue",
    most_failed: int = 0,
    on_done: Function[..., Any] | str = "",
    events: Sequence[str] = (),
    name: str = "",
    final: bool | None = None,
    **options: Any,
) -> tuple[Draft, Stage]:
    """Draws a tree with a job for each function, each after the one before; returns it with its first job."""
    draft = Draft(type, key, policy, most_failed, on_done, events)
    root = stage = draft.put(functions[0], name, final=final, **options)
    for function in functions[1:]:
        stage = stage.then(function, **options)
    return draft, root
