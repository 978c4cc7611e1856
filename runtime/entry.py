"""Values of the engine: a kind of item, an item, and the runner of items."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from ..foundation.current_run import Identity
from ..model.job import JobHolder
from ..model.outcome import Outcome
from ..model.redrive import shown
from ..model.workload import Ended
from ..sdk.context import Context
from ..sdk.function import Function
from ..sdk.opened_content import Places
from .frames import EXPIRES_AT, HEADERS, Assign, ExtraRow
from .parents import Parents, ParentWait
from .rules.attempt import Stop

if TYPE_CHECKING:
    from .gathering import GatheredArguments


class PreparedKind:
    """One kind of item, made once: all that a run needs without another lookup."""

    __slots__ = (
        "call",
        "collection",
        "context",
        "decode",
        "is_async",
        "name",
        "priority",
        "ran",
        "results",
        "signs",
        "tenant",
        "timeout",
        "waits",
    )

    def __init__(
        self, function: Function[..., Any], priority: int, collection: str, tenant: str, ran: list[float]
    ) -> None:
        self.call: Callable[..., Any] = function.call
        self.decode = function.arguments.decode
        self.context = function.context_parameter
        self.is_async = function.is_async
        self.timeout = function.spec.timeout
        self.results = function.spec.results
        self.signs = function.throttled_by
        self.name = function.spec.name
        self.priority = priority
        self.collection = collection
        self.tenant = tenant
        self.waits = False  # a run of it has waited for other work here
        self.ran = ran  # seconds of plain successes that were not told yet, of all kinds of the function


#: key, kind, payload, and the batch it came in, which holds the rest by index (key - first).
Item = tuple[int, PreparedKind, bytes, Assign]
KEY: Final = 0
ENTRY: Final = 1
BATCH: Final = 3
#: The batch of a runner that rests, so that it keeps none.
NONE: Final = Assign(0, 0.0, 0, [], [], [], [], [], [], {}, False, False)


def described(running: Any) -> Identity:
    """Function, id, attempt and headers of a running item, for log lines. `running` is its kind, key and batch."""
    entry, key, frame = running
    index = key - frame.first
    extra = frame.extras.get(index) if frame.extras else None
    return entry.name, frame.ids[index], frame.attempts[index], extra[HEADERS] if extra is not None else ()


def make_context(item: Item, deadline: float | None, note: Callable[[int, str], None], places: Places) -> Context:
    """The Context of a run; made only for functions that ask for it."""
    key, entry, payload, frame = item
    index = key - frame.first
    ordering_key, headers, crashes, _, progress = frame.extras.get(index, ("", (), 0, 0.0, ""))
    id = frame.ids[index]
    origin, fence, headers = shown(id, frame.fences[index], tuple((name, value) for name, value in headers))
    return Context(
        id=id,
        origin=origin,
        function=entry.name,
        attempt=frame.attempts[index],
        crashes=crashes,
        fence=fence,
        deadline=deadline,
        headers=headers,
        key=ordering_key,
        collection=entry.collection,
        tenant=entry.tenant,
        previous_progress=progress,
        note=lambda text: note(key, text),
        payload=payload,
        places=places,
    )


def gathered(item: Item) -> GatheredArguments:
    """The reader of a run's gathered results; its module is loaded with the first of them."""
    from .gathering import of_run

    key, entry, payload, frame = item
    index = key - frame.first
    return of_run(entry.name, payload, JobHolder(frame.ids[index], frame.fences[index]), entry.decode)


def with_used(ended: Ended | None, context: Context | None, *, wanted: bool) -> Ended | None:
    """The end of a run with the amounts that it reported as used; `wanted`: somebody wants its result."""
    used = context.amounts if context is not None else ()
    if not used:
        return ended
    if ended is None:
        return Ended(Outcome.SUCCESS, used=used)
    return replace(ended, used=used, result=ended.result if wanted else None)


def extra_of(item: Item) -> ExtraRow | None:
    """The values that few items carry (ordering key, headers, crashes, expiry, progress); None: this one has none."""
    batch = item[BATCH]
    return batch.extras.get(item[KEY] - batch.first)


def is_late(item: Item, now: float) -> bool:
    """Whether an item expired before it started. `now` is wall clock seconds."""
    extra = extra_of(item)
    return extra is not None and 0 < extra[EXPIRES_AT] <= now


class Runner:
    """A long-lived task that runs one item after the other. Invariant: `key` is 0 when it runs nothing."""

    __slots__ = ("cell", "context", "counted", "deadline", "entry", "key", "parents", "stop", "task", "waker")
    threaded = False

    def __init__(self, cell: int, parents: Parents) -> None:
        self.cell = cell
        self.parents = parents
        self.key = 0
        self.stop = Stop.NONE
        self.deadline: float | None = None
        self.entry: PreparedKind | None = None
        self.counted = False  # among the runs of functions that wait for other work
        self.context: Context | None = None
        self.task: asyncio.Task[None] | None = None
        self.waker: asyncio.Future[None] | None = None

    def wait(self, *, blocking: bool) -> ParentWait | None:
        """Begins a wait of its item for other work (foundation/current_run.py)."""
        return self.parents.begin(self, blocking=blocking)

    async def rest(self, idle: list[Runner], loop: asyncio.AbstractEventLoop) -> None:
        """Waits in `idle` until it is woken."""
        self.waker = loop.create_future()
        idle.append(self)
        try:
            await self.waker
        finally:
            if self in idle:  # a cancellation that a function left behind
                idle.remove(self)

    def wake(self) -> None:
        """Ends its rest; it has left `idle`."""
        if self.waker is not None and not self.waker.done():
            self.waker.set_result(None)

    def cancel(self, why: Stop) -> None:
        """Asks the run to end."""
        self.stop = why
        if self.context is not None:
            self.context.cancelled = True
        if self.key in self.parents.open:
            self.parents.stop(self.key)
        if self.task is not None:
            self.task.cancel()

    def forgive(self) -> None:
        """Takes back the cancellations that we asked for."""
        if self.stop is not Stop.NONE and self.task is not None:
            self.stop = Stop.NONE
            self.task.uncancel()
