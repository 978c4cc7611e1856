"""Jobs of both clients: a tree of jobs is drawn with `then` and `gather`, made by the first call that needs it, filled
with items, and sealed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from ..model.did_you_mean import meant
from ..model.errors import InvalidRequest
from ..model.job import JobResult, ResultPage, TreeStatus
from . import job_calls
from .call import called_by
from .context import Context
from .conversation import Conversation, Steps
from .job_drafts import Draft, Given, Stage, Target, item_of

if TYPE_CHECKING:
    from .function import Function

T = TypeVar("T")


class Followed:
    """The common part of `Job` and `AsyncJob`: a job by its id, with the draft of its tree if that was drawn here.
    `gathers_anew`: after `retry`, the names of jobs that gather the results of the new try alone."""

    gathers_anew: tuple[str, ...] = ()

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
        """Draws a job after the first one. See `Stage.then`."""
        return Stage(self._drawn(), self._root).then(function, **said)

    def gather(self, function: Function[..., Any] | str, **said: Any) -> Stage:
        """Draws a job that gets all results of the first one as a list. See `Stage.gather`."""
        return Stage(self._drawn(), self._root).gather(function, **said)

    def _known(self, talk: Conversation) -> Steps[None]:
        """Makes the tree, if that was not done; or finds it by the item that a run has."""
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
        """The name of the job that items go to, and the function (or its name) that takes their arguments."""
        functions = self._functions if self._draft is None else self._draft.functions
        if to is None or isinstance(to, str | Stage):
            name = self._root if to is None else to if isinstance(to, str) else to.name
            if name not in functions:
                raise InvalidRequest(f"the tree {self.id} has no job {name!r:.100}: {meant(name, functions)}")
            return name, functions[name]
        called = called_by(to, "an item")
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

    def _change(self, talk: Conversation, what: str, why: str) -> Steps[str]:
        yield from self._known(talk)
        return (yield from job_calls.change(talk, self.id, what, why))

    _again = ""  # the id of another try that was asked for and not answered

    def _retry(self, talk: Conversation, why: str) -> Steps[TreeStatus]:
        """Asks for another try. A request that was not answered is repeated with the same id."""
        self._again = self._again or job_calls.new_id()
        found = yield from job_calls.retry(talk, self.id, self._again, why)
        self._again = ""
        return found

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id}>"


class _Runs(Protocol):
    """The part of a `Client` that a job uses."""

    _talk: Conversation

    def _run(self, steps: Steps[T], /) -> T: ...


class _RunsAwaited(Protocol):
    """The part of an `AsyncClient` that a job uses."""

    _talk: Conversation

    async def _run(self, steps: Steps[T], /) -> T: ...


class Job(Followed):
    """A job with all jobs after it: a tree, known by one id. It is made by the first call that needs it."""

    def __init__(self, client: _Runs, id: str, draft: Draft | None, root: str, run: Context | None = None) -> None:
        super().__init__(id, draft, root, run)
        self._client = client

    def add(self, *args: Any, key: str = "", dedupe_key: str = "", to: Target | None = None, **kwargs: Any) -> int:
        """Adds one item, given as the function's arguments; it is durable when this returns. Returns how many were
        added. `key`: at most one item of a key runs at a time; `dedupe_key`: a second item with it raises Conflict;
        `to`: a stage, its name, or its function, instead of the first job."""
        return self.add_many([Given(args, kwargs, key, dedupe_key)], to=to)

    def add_many(self, items: Iterable[Any], *, to: Target | None = None) -> int:
        """Adds many items, in chunks of at most 1000 (or 1 MiB), each stored whole or not at all; returns how many were
        added. An item is the function's one argument, a tuple of several, a dict of them by name, or a Call."""
        return self._client._run(self._add(self._client._talk, items, to))

    def seal(self, stage: Stage | None = None) -> TreeStatus:
        """Says that nothing more is added to the first job (or `stage`): the tree completes when all in it has ended.
        Harmless twice."""
        return self._client._run(self._seal(self._client._talk, stage))

    def status(self) -> TreeStatus:
        """The state of the tree, with the counts of each job's items."""
        return self._client._run(self._status(self._client._talk))

    progress = status

    def wait(self, timeout: float | str | None = None) -> TreeStatus:
        """Waits until the tree is over. Raises WorkloadFailed when it failed or was cancelled, and TimeoutError after
        `timeout` (seconds or "10s"; None: no limit): it goes on then."""
        found = self._client._run(self._wait(self._client._talk, timeout))
        job_calls.check_over(found)
        return found

    def results(self) -> Iterator[Any]:
        """Yields the values that the items of final jobs returned, in the order in which these were made, page by page.
        Failed items are left out."""
        return (job_calls.value_of(each.result) for each in self.outcomes() if each.succeeded)

    def outcomes(self) -> Iterator[JobResult]:
        """Yields the end of each item of the final jobs that has ended, failed ones too, page by page."""
        after = ""
        while True:
            page = self._client._run(self._results(self._client._talk, after))
            yield from page.results
            after = page.after
            if not after:
                return

    def cancel(self, *, why: str = "") -> str:
        """Ends the tree: its waiting items are cancelled, its running ones are told. Returns `done`, or `over` when
        there was nothing to do. `why` is kept with the name of the caller, here and below."""
        return self._client._run(self._change(self._client._talk, "cancel", why))

    def pause(self, *, why: str = "") -> str:
        """Starts no more items of the tree, until `resume`. Returns `done` or `over`."""
        return self._client._run(self._change(self._client._talk, "pause", why))

    def resume(self, *, why: str = "") -> str:
        """Lets the tree go on. Returns `done` or `over`."""
        return self._client._run(self._change(self._client._talk, "resume", why))

    def retry(self, *, why: str = "") -> Job:
        """Makes another job of the items that failed in this one, which must be over: the same tree, filled and sealed.
        Its `gathers_anew` names the jobs that gather the results of the new try alone, since items before them had
        failed."""
        found = self._client._run(self._retry(self._client._talk, why))
        again = Job(self._client, found.id, None, "")
        again.gathers_anew = tuple(found.anew)
        return again

    def delete(self, *, why: str = "") -> str:
        """Cancels the tree, and forgets it once nothing of it runs. Returns `done` or `over`."""
        return self._client._run(self._change(self._client._talk, "delete", why))


class AsyncJob(Followed):
    """A job for asyncio: `Job` with `await`."""

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
        """Adds many items. See `Job.add_many`."""
        return await self._client._run(self._add(self._client._talk, items, to))

    async def seal(self, stage: Stage | None = None) -> TreeStatus:
        """Says that nothing more is added. See `Job.seal`."""
        return await self._client._run(self._seal(self._client._talk, stage))

    async def status(self) -> TreeStatus:
        """The state of the tree. See `Job.status`."""
        return await self._client._run(self._status(self._client._talk))

    progress = status

    async def wait(self, timeout: float | str | None = None) -> TreeStatus:
        """Waits until the tree is over. See `Job.wait`."""
        found = await self._client._run(self._wait(self._client._talk, timeout))
        job_calls.check_over(found)
        return found

    async def results(self) -> AsyncIterator[Any]:
        """Yields the values that the items of final jobs returned. See `Job.results`."""
        async for each in self.outcomes():
            if each.succeeded:
                yield job_calls.value_of(each.result)

    async def outcomes(self) -> AsyncIterator[JobResult]:
        """Yields the end of each ended item of the final jobs. See `Job.outcomes`."""
        after = ""
        while True:
            page = await self._client._run(self._results(self._client._talk, after))
            for each in page.results:
                yield each
            after = page.after
            if not after:
                return

    async def cancel(self, *, why: str = "") -> str:
        """Ends the tree. See `Job.cancel`."""
        return await self._client._run(self._change(self._client._talk, "cancel", why))

    async def pause(self, *, why: str = "") -> str:
        """Starts no more items of the tree, until `resume`. Returns `done` or `over`."""
        return await self._client._run(self._change(self._client._talk, "pause", why))

    async def resume(self, *, why: str = "") -> str:
        """Lets the tree go on. Returns `done` or `over`."""
        return await self._client._run(self._change(self._client._talk, "resume", why))

    async def retry(self, *, why: str = "") -> AsyncJob:
        """Makes another job of the items that failed in this one. See `Job.retry`."""
        found = await self._client._run(self._retry(self._client._talk, why))
        again = AsyncJob(self._client, found.id, None, "")
        again.gathers_anew = tuple(found.anew)
        return again

    async def delete(self, *, why: str = "") -> str:
        """Cancels the tree, and forgets it once nothing of it runs. Returns `done` or `over`."""
        return await self._client._run(self._change(self._client._talk, "delete", why))
