"""Calls about jobs that a client makes to a gateway, as steps of a conversation (`talk`, the client's). Each call can
be repeated: a tree's id and the token of an addition are drawn before the first time."""

from __future__ import annotations

import math
import uuid
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ..foundation.identity import whoami
from ..model.act import reason
from ..model.errors import WorkloadFailed
from ..model.job import JobHolder, JobItem, ResultPage, TreeSpec, TreeState, TreeStatus
from ..model.units import seconds
from ..wire.named_fields import named
from ..wire.ports.jobs import JobPagePort, JobPort
from ..wire.stores import call_of
from .context import Context
from .conversation import Conversation, Steps

#: Items, and payload bytes, of one call; results of one page.
CHUNK_ITEMS, CHUNK_BYTES, PAGE = 1000, 1 << 20, 1000
#: Longest wait (seconds) of one call for the end of a job.
LONGEST_WAIT = 20.0


def new_id() -> str:
    """The id of a tree to be made."""
    return f"job-{uuid.uuid4().hex[:20]}"


def _asked(
    talk: Conversation, method: Callable[..., Any], extra: float = 0.0, port: str = "jobs", **arguments: Any
) -> Steps[Any]:
    form = named(method)
    request = call_of(port, form, form.arguments(**arguments))
    reply = yield from talk.answered("Call", request, extra)
    return form.decode_result(reply.value)


def create(talk: Conversation, tree: TreeSpec) -> Steps[TreeStatus]:
    """Makes a tree; it is durable when this returns."""
    found: TreeStatus = yield from _asked(talk, JobPort.create_job, tree=tree)
    return found


def add(talk: Conversation, tree: str, job: str, items: Iterable[JobItem], run: Context | None = None) -> Steps[int]:
    """Adds items in chunks, each stored whole or not at all; returns how many. The token of an addition that a `run`
    makes is its item's id with the number of the addition, so that another attempt of it adds nothing twice."""
    added = 0
    for some in _chunks(items):
        holder = None if run is None else JobHolder(run.id, run.fence)
        token = uuid.uuid4().hex if run is None else f"in-{run.id}-{run.next_addition()}"
        added += yield from _asked(talk, JobPort.add_to_job, tree=tree, job=job, token=token, items=some, holder=holder)
    return added


def _chunks(items: Iterable[JobItem]) -> Iterator[list[JobItem]]:
    chunk: list[JobItem] = []
    size = 0
    for item in items:
        if chunk and (len(chunk) >= CHUNK_ITEMS or size + len(item.payload) > CHUNK_BYTES):
            yield chunk
            chunk, size = [], 0
        chunk.append(item)
        size += len(item.payload)
    if chunk:
        yield chunk


def seal(talk: Conversation, tree: str, job: str) -> Steps[TreeStatus]:
    """Seals a job of a tree."""
    found: TreeStatus = yield from _asked(talk, JobPort.seal_job, tree=tree, job=job)
    return found


def status(talk: Conversation, tree: str, item: str = "") -> Steps[TreeStatus]:
    """The state of a tree, given by its id or by the id of one of its items."""
    found: TreeStatus = yield from _asked(talk, JobPort.job, tree=tree, item=item)
    return found


def wait(talk: Conversation, tree: str, timeout: float | str | None) -> Steps[TreeStatus]:
    """Waits for the end of a tree. Raises TimeoutError after `timeout` (None: never), which changes nothing of it."""
    end = math.inf if timeout is None else talk.now() + seconds(timeout)
    while True:
        left = max(0.0, min(LONGEST_WAIT, end - talk.now()))
        found: TreeStatus = yield from _asked(talk, JobPort.job, left, tree=tree, wait=left)
        if found.over:
            return found
        if talk.now() >= end:
            raise TimeoutError(
                f"the job {tree} is {found.state}: {found.pending} of its items have not ended. It goes on; wait again "
                "later, or cancel it"
            )


def results(talk: Conversation, tree: str, after: str) -> Steps[ResultPage]:
    """A page of the results of a tree's final jobs, after the one that ended with `after`."""
    page: ResultPage = yield from _asked(talk, JobPort.job_results, tree=tree, after=after, limit=PAGE)
    return page


def gathered(talk: Conversation, holder: JobHolder, after: str) -> Steps[ResultPage]:
    """A page of the results that the item of a run gathers."""
    page: ResultPage = yield from _asked(
        talk, JobPagePort.gathered, port="job_pages", holder=holder, after=after, limit=PAGE
    )
    return page


def change(talk: Conversation, tree: str, what: str, why: str = "") -> Steps[str]:
    """Cancels, pauses, resumes or deletes a tree (`what`); answers `done`, or `over`."""
    word: str = yield from _asked(talk, JobPort.change_job, tree=tree, what=what, who=whoami(), why=reason(why))
    return word


def retry(talk: Conversation, tree: str, id: str, why: str = "") -> Steps[TreeStatus]:
    """Makes another tree of the items that failed in one, or answers with the open one that was made before."""
    asked = {"tree": tree, "id": id, "who": whoami(), "why": reason(why)}
    found: TreeStatus = yield from _asked(talk, JobPort.retry_job, LONGEST_WAIT, **asked)
    return found


def value_of(result: bytes) -> Any:
    """The return value of a function, from its JSON."""
    import pydantic_core

    return pydantic_core.from_json(result)


def check_over(status: TreeStatus) -> None:
    """Raises WorkloadFailed for a tree that failed or was cancelled."""
    if status.state in (TreeState.FAILED, TreeState.CANCELLED):
        raise WorkloadFailed(
            f"the job {status.id} ({status.type}) ended as {status.state}: {status.why}",
            id=status.id,
            outcome=status.state,
            reason=status.why,
            attempts=0,
        )
