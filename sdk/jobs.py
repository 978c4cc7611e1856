"""Jobs of both clients: a tree is drawn with `then` and `gather`, made by the first thing that is asked of it, filled
and sealed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias, TypeVar

from ..foundation.identity import whoami
from ..model.did_you_mean import meant
from ..model.errors import InvalidRequest
from ..model.job import JobItem, JobResult, JobSpec, ResultPage, TreeSpec, TreeStatus
from ..model.priority import Priority
from . import job_calls
from .call import Call
from .context import Context
from .conversation import Conversation, Steps

if TYPE_CHECKING:
    from .function import Function

T = TypeVar("T")


#: A job of a tree, as an addition names it.
Target: TypeAlias = "Stage | Function[..., Any] | str"


class Stage:
    """One job of a tree that is being drawn: what comes after it is drawn from it."""

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
        """A job whose items are made of this one's results, one by one, as soon as each is there.

        function  what runs it
        name      what it is called in its tree; default: the function's name
        argument  the parameter that gets a result; default: the function's first one
        each      a result is a list, and each element of it becomes an item
        final     its results are the tree's; default: when nothing comes after it
        also      other jobs whose results it gets too
        options   priority (default eventual), collection, tenant
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
        """A job of one item: it gets the list of all results of this one (and of `also`), when these are complete."""
        parents = (self.name, *(stage.name for stage in also))
        return self._draft.put(function, name, parents=parents, argument=argument, gather=True, final=final, **options)

    def __repr__(self) -> str:
        return f"<Stage {self.name} of {self._draft.id}>"


class Draft:
    """A tree that is being drawn; nothing is known of it elsewhere yet."""

    def __init__(self, type: str, key: str, policy: str, most_failed: int) -> None:
        self.id = job_calls.new_id()
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
        """One more job."""
        if self.made:
            raise InvalidRequest(
                f"the job {self.id} is made, and its tree is fixed: draw all of it before the first add"
            )
        called = function if isinstance(function, str) else getattr(getattr(function, "spec", None), "name", None)
        if not isinstance(called, str):
            raise InvalidRequest(
                f"cannot make a job of {function!r:.200}: expected a function declared with @tailrace.function, or its "
                "name"
            )
        name = name or self._free(called)
        rank = None if priority is None else int(Priority.parse(priority))
        self._jobs.append(JobSpec(name, called, priority=rank, collection=collection, tenant=tenant, **said))
        self.functions[name] = function
        return Stage(self, name)

    def _free(self, called: str) -> str:
        """A function may have several jobs of a tree."""
        number, name = 1, called
        while name in self.functions:
            number += 1
            name = f"{called}-{number}"
        return name

    def spec(self) -> TreeSpec:
        """What is asked for."""
        return TreeSpec(self.id, self._type, self._jobs, self._key, self._policy, self._most_failed, whoami())


def _plain(text: str) -> str:
    """A subclass of text as text: no message carries it otherwise."""
    return str(text) if isinstance(text, str) else text


class Given(NamedTuple):
    """The arguments of one item, with its keys."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    key: str
    dedupe_key: str


def item_of(function: Function[..., Any] | str, given: Any) -> JobItem:
    """An item of what was given: a Call, the arguments by name (a mapping), several (a tuple), or the one."""
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


class Followed:
    """A job of a client: by its id, with the tree that it was drawn with, if it was drawn here."""

    def __init__(self, id: str, draft: Draft | None, root: str, run: Context | None = None) -> None:
        self.id = id
        self._within = run
        self._draft = draft
        self._root = root

    def _drawn(self) -> Draft:
        if self._draft is None:
            raise InvalidRequest(f"the job {self.id} was made elsewhere, and its tree is fixed")
        return self._draft

    def then(self, function: Function[..., Any] | str, **said: Any) -> Stage:
        """A job after the first one. See `Stage.then`."""
        return Stage(self._drawn(), self._root).then(function, **said)

    def gather(self, function: Function[..., Any] | str, **said: Any) -> Stage:
        """A job that gets all results of the first one as a list. See `Stage.gather`."""
        return Stage(self._drawn(), self._root).gather(function, **said)

    def _known(self, talk: Conversation) -> Steps[None]:
        """It is made, or found by the item of a run."""
        if self._within is not None:
            yield from self._find(talk)
        yield from self._created(talk)

    def _created(self, talk: Conversation) -> Steps[None]:
        draft = self._draft
        if draft is not None and not draft.made:
            yield from job_calls.create(talk, draft.spec())
            draft.made = True

    def _add(self, talk: Conversation, given: Iterable[Any], to: Target | None) -> Steps[int]:
        if self._draft is None:
            yield from self._find(talk)
        name, function = self._target(to)
        yield from self._created(talk)
        items = (item_of(function, each) for each in given)
        return (yield from job_calls.add(talk, self.id, name, items, self._within))

    def _target(self, to: Target | None) -> tuple[str, Function[..., Any] | str]:
        """The name of the job that items go to, and what makes items of arguments."""
        functions = self._functions if self._draft is None else self._draft.functions
        if to is None or isinstance(to, str | Stage):
            name = self._root if to is None else to if isinstance(to, str) else to.name
            if name not in functions:
                raise InvalidRequest(f"the job {self.id} has no job {name!r:.100}: {meant(name, functions)}")
            return name, functions[name]
        called = to.spec.name
        named = [
            name for name, each in functions.items() if called == (each if isinstance(each, str) else each.spec.name)
        ]
        if self._root in named:
            return self._root, to
        if len(named) != 1:
            what = f"several jobs of {called!r}: give the name of one" if named else f"no job of {called!r}"
            raise InvalidRequest(f"the job {self.id} has {what}")
        return named[0], to

    _functions: dict[str, Function[..., Any] | str] = {}  # noqa: RUF012 - replaced whole, when it was found out

    def _find(self, talk: Conversation) -> Steps[None]:
        if not self._functions:
            found = yield from job_calls.status(talk, self.id, "" if self._within is None else self._within.id)
            self.id, self._root = found.id, found.job_of_item or found.jobs[0].name
            self._functions = {job.name: job.function for job in found.jobs}

    def _seal(self, talk: Conversation, stage: Stage | None) -> Steps[TreeStatus]:
        yield from self._known(talk)
        return (yield from job_calls.seal(talk, self.id, self._root if stage is None else stage.name))

    def _status(self, talk: Conversation) -> Steps[TreeStatus]:
        yield from self._known(talk)
        return (yield from job_calls.status(talk, self.id))

    def _results(self, talk: Conversation, after: str) -> Steps[ResultPage]:
        yield from self._known(talk)
        return (yield from job_calls.results(talk, self.id, after))

    def _wait(self, talk: Conversation, timeout: float | str | None) -> Steps[TreeStatus]:
        yield from self._known(talk)
        return (yield from job_calls.wait(talk, self.id, timeout))

    def _change(self, talk: Conversation, what: str) -> Steps[str]:
        yield from self._known(talk)
        return (yield from job_calls.change(talk, self.id, what))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id}>"


class _Runs(Protocol):
    """A `Client`, as far as a job asks it."""

    _talk: Conversation

    def _run(self, steps: Steps[T], /) -> T: ...


class _RunsAwaited(Protocol):
    """An `AsyncClient`, as far as a job asks it."""

    _talk: Conversation

    async def _run(self, steps: Steps[T], /) -> T: ...


class Job(Followed):
    """A job with all that comes after it: a tree, known by one id. It is made by the first call that needs it."""

    def __init__(self, client: _Runs, id: str, draft: Draft | None, root: str, run: Context | None = None) -> None:
        super().__init__(id, draft, root, run)
        self._client = client

    def add(self, *args: Any, key: str = "", dedupe_key: str = "", to: Target | None = None, **kwargs: Any) -> int:
        """Adds one item: the function's arguments. It is durable when this returns. `key`: at most one item of a key
        runs at a time; `dedupe_key`: a second one with it raises Conflict; `to`: another job than the
        first: a stage, its name, or its function."""
        return self.add_many([Given(args, kwargs, key, dedupe_key)], to=to)

    def add_many(self, items: Iterable[Any], *, to: Target | None = None) -> int:
        """Adds many, in chunks of at most 1000 (or 1 MiB), each whole or not at all. An item is the function's one
        argument, a tuple of several, a dict of them by name, or a Call."""
        return self._client._run(self._add(self._client._talk, items, to))

    def seal(self, stage: Stage | None = None) -> TreeStatus:
        """From now on nothing can be added: the tree completes when everything in it has ended. Harmless twice."""
        return self._client._run(self._seal(self._client._talk, stage))

    def status(self) -> TreeStatus:
        """How the tree stands: each job with its items."""
        return self._client._run(self._status(self._client._talk))

    progress = status

    def wait(self, timeout: float | str | None = None) -> TreeStatus:
        """Waits until the tree is over. Raises WorkloadFailed when it ended before its time, TimeoutError."""
        found = self._client._run(self._wait(self._client._talk, timeout))
        job_calls.check_over(found)
        return found

    def results(self) -> Iterator[Any]:
        """The values that final jobs returned, in the order in which their items were made, page by page."""
        return (job_calls.value_of(each.result) for each in self.outcomes() if each.succeeded)

    def outcomes(self) -> Iterator[JobResult]:
        """What became of each item of a final job that has ended, failed ones too."""
        after = ""
        while True:
            page = self._client._run(self._results(self._client._talk, after))
            yield from page.results
            after = page.after
            if not after:
                return

    def cancel(self) -> str:
        """Ends the tree: what waits is cancelled, what runs is told."""
        return self._client._run(self._change(self._client._talk, "cancel"))

    def pause(self) -> str:
        """Nothing more of it is started, until `resume`."""
        return self._client._run(self._change(self._client._talk, "pause"))

    def resume(self) -> str:
        """It goes on."""
        return self._client._run(self._change(self._client._talk, "resume"))

    def retry(self) -> Job:
        """Another job, of the items that failed in this one, which must be over: the same tree, filled and sealed."""
        id = job_calls.new_id()
        self._client._run(job_calls.retry(self._client._talk, self.id, id))
        return Job(self._client, id, None, "")

    def delete(self) -> str:
        """Cancels it, and forgets it once nothing of it runs."""
        return self._client._run(self._change(self._client._talk, "delete"))


class AsyncJob(Followed):
    """The same for asyncio: `Job` with `await`."""

    def __init__(
        self, client: _RunsAwaited, id: str, draft: Draft | None, root: str, run: Context | None = None
    ) -> None:
        super().__init__(id, draft, root, run)
        self._client = client

    async def add(
        self, *args: Any, key: str = "", dedupe_key: str = "", to: Target | None = None, **kwargs: Any
    ) -> int:
        """Adds one item. See `Job.add`."""
        return await self.add_many([Given(args, kwargs, key, dedupe_key)], to=to)

    async def add_many(self, items: Iterable[Any], *, to: Target | None = None) -> int:
        """Adds many. See `Job.add_many`."""
        return await self._client._run(self._add(self._client._talk, items, to))

    async def seal(self, stage: Stage | None = None) -> TreeStatus:
        """From now on nothing can be added. See `Job.seal`."""
        return await self._client._run(self._seal(self._client._talk, stage))

    async def status(self) -> TreeStatus:
        """How the tree stands."""
        return await self._client._run(self._status(self._client._talk))

    progress = status

    async def wait(self, timeout: float | str | None = None) -> TreeStatus:
        """Waits until the tree is over. See `Job.wait`."""
        found = await self._client._run(self._wait(self._client._talk, timeout))
        job_calls.check_over(found)
        return found

    async def results(self) -> AsyncIterator[Any]:
        """The values that final jobs returned. See `Job.results`."""
        async for each in self.outcomes():
            if each.succeeded:
                yield job_calls.value_of(each.result)

    async def outcomes(self) -> AsyncIterator[JobResult]:
        """What became of each item of a final job that has ended."""
        after = ""
        while True:
            page = await self._client._run(self._results(self._client._talk, after))
            for each in page.results:
                yield each
            after = page.after
            if not after:
                return

    async def cancel(self) -> str:
        """Ends the tree. See `Job.cancel`."""
        return await self._client._run(self._change(self._client._talk, "cancel"))

    async def pause(self) -> str:
        """Nothing more of it is started, until `resume`."""
        return await self._client._run(self._change(self._client._talk, "pause"))

    async def resume(self) -> str:
        """It goes on."""
        return await self._client._run(self._change(self._client._talk, "resume"))

    async def retry(self) -> AsyncJob:
        """Another job, of the items that failed in this one. See `Job.retry`."""
        id = job_calls.new_id()
        await self._client._run(job_calls.retry(self._client._talk, self.id, id))
        return AsyncJob(self._client, id, None, "")

    async def delete(self) -> str:
        """Cancels it, and forgets it once nothing of it runs."""
        return await self._client._run(self._change(self._client._talk, "delete"))


def draft_of(
    type: str,
    functions: Sequence[Function[..., Any] | str],
    *,
    key: str = "",
    policy: str = "continue",
    most_failed: int = 0,
    name: str = "",
    final: bool | None = None,
    **options: Any,
) -> tuple[Draft, Stage]:
    """A tree whose first job is of the first function, each of the others after the one before."""
    draft = Draft(type, key, policy, most_failed)
    root = stage = draft.put(functions[0], name, final=final, **options)
    for function in functions[1:]:
        stage = stage.then(function, **options)
    return draft, root
