"""Following workloads to their end: the questions of a client to a gateway, as steps of a conversation; `talk` is the
client's own and no argument of its methods."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from ..foundation.identity import whoami
from ..model.act import reason
from ..model.claim import State
from ..model.did_you_mean import meant
from ..model.errors import InvalidRequest, WorkloadFailed
from ..model.one_item import Peeked, Rescheduled
from ..model.priority import Priority
from ..model.search import MOST_FOUND, Search
from ..model.status import SUCCESS, WorkloadStatus
from ..model.units import seconds
from ..wire.gateway_messages import peeked_from_wire, rescheduled_from_wire, status_from_wire
from ..wire.search_messages import search_to_wire
from ..wire.v1 import gateway_pb2 as pb
from .call import moment
from .conversation import Conversation, Steps

#: Ids of one call.
CHUNK_IDS = 1000
#: One call that waits for a result asks for at most so many seconds, and gets so many more to answer.
LONGEST_WAIT = 30.0
ANSWER_MARGIN = 10.0
#: Bytes of a payload that `peek` asks for.
PEEK_BYTES = 64 << 10
#: What the ids of spooled workloads begin with, and what a gateway says of an id that it does not know.
SPOOL_ID = "spool-"
UNKNOWN = "unknown"


def status(talk: Conversation, id: str) -> Steps[WorkloadStatus]:
    """Where a workload is now. Raises InvalidRequest when its id is not known."""
    [found] = yield from status_many(talk, [id], tries=True)
    return _known(id, found)


def status_many(talk: Conversation, ids: Iterable[str], *, tries: bool = False) -> Steps[list[WorkloadStatus | None]]:
    """Where each of several workloads is now; None for an unknown id. With `tries` also how their attempts went."""
    found: list[WorkloadStatus | None] = []
    for some in _chunks(ids):
        reply = yield from talk.answered("Status", pb.StatusRequest(ids=some, tries=tries))
        statuses = [status_from_wire(message) for message in reply.statuses]
        strangers = [at for at, id in enumerate(some) if statuses[at] is None and id.startswith(SPOOL_ID)]
        if strangers:
            request = pb.StatusRequest(ids=[some[at] for at in strangers], tries=tries)
            for other in (yield from talk.elsewhere("Status", request)):
                for at, message in zip(strangers, other.statuses, strict=True):
                    statuses[at] = statuses[at] or status_from_wire(message)
        found += statuses
    return found


def find(
    talk: Conversation,
    *,
    function: str = "",
    tenant: str = "",
    states: Sequence[str] = (),
    key: str = "",
    since: datetime | float = 0.0,
    until: datetime | float = 0.0,
    after: str = "",
    limit: int = 100,
) -> Steps[list[WorkloadStatus]]:
    """Workloads of the queue that fit everything given, the newest first, at most `limit`.

    function, tenant  theirs
    states            of these names (`WorkloadStatus.state`)
    key               the ordering key; of those that have not ended
    since, until      submitted from and before: wall clock seconds or a datetime
    after             the id of the last one of a former answer: go on behind it

    What has ended is found as long as the queue keeps it (`retention` of stores.yaml). Spooled workloads are not
    in the queue yet. Raises InvalidRequest.
    """
    known = {state.label: state for state in State}
    for name in states:
        if name not in known:
            raise InvalidRequest(f"there is no state {name!r:.50}: {meant(name, known)}")
    if limit < 1:
        raise InvalidRequest(f"limit is {limit}: expected at least 1")
    chosen = tuple(known[name] for name in states)
    search = Search(function, tenant, chosen, key, moment("since", since), moment("until", until), after, limit)
    found: list[WorkloadStatus] = []
    while True:
        request = search_to_wire(replace(search, limit=min(limit - len(found), MOST_FOUND)))
        reply = yield from talk.answered("Find", request)
        found += [status for message in reply.statuses if (status := status_from_wire(message)) is not None]
        if not reply.after or len(found) >= limit:
            return found
        search = replace(search, after=reply.after)


def result(talk: Conversation, id: str, timeout: float | str | None = None) -> Steps[Any]:
    """Waits for the end of a workload and returns its value (None too when its result is not kept any more).

    Raises WorkloadFailed with the reason when it did not succeed, TimeoutError after `timeout` (seconds or "10s";
    None: as long as it takes; in a function what is left of its own timeout, else 10 minutes), InvalidRequest for an
    unknown id. In a function whose run cannot wait also InvalidRequest, and Throttled when too many wait already.
    """
    patience = None if timeout is None else seconds(timeout)
    end = None if patience is None else talk.now() + patience
    strange = 0  # gateways that do not know it
    while True:
        left = LONGEST_WAIT if end is None else max(0.0, end - talk.now())
        wait = min(LONGEST_WAIT, left)
        request = pb.ResultRequest(id=id, wait=wait)
        reply = yield from talk.answered("Result", request, extra=wait + ANSWER_MARGIN)
        if not reply.status.known and id.startswith(SPOOL_ID) and strange + 1 < len(talk.addresses):
            strange += 1
            talk.turn()
            continue
        status = _known(id, status_from_wire(reply.status))
        if status.ended:
            return _value(status, reply)
        if end is not None and talk.now() >= end:
            raise TimeoutError(
                f"{status.function} {id} has not ended within {patience:g} seconds: it is {status.state}"
                f"{f' after {status.attempts} failed attempts ({status.reason})' if status.attempts else ''}. "
                "It goes on; ask again later, or cancel it"
            )


def cancel(talk: Conversation, id: str, *, why: str = "") -> Steps[str]:
    """Asks for the end of a workload: `cancelled` (it had not started), `requested` (its worker will be told),
    `ended` (it was over) or `unknown`. `why` is kept with who asked."""
    return (yield from cancel_many(talk, [id], why=why))[0]


def cancel_many(talk: Conversation, ids: Iterable[str], *, why: str = "") -> Steps[list[str]]:
    """The same for several: one word for each."""
    who, why, found = whoami(), reason(why), list[str]()
    for some in _chunks(ids):
        outcomes = list((yield from talk.answered("Cancel", pb.CancelRequest(ids=some, who=who, why=why))).outcomes)
        strangers = [at for at, id in enumerate(some) if outcomes[at] == UNKNOWN and id.startswith(SPOOL_ID)]
        if strangers:
            request = pb.CancelRequest(ids=[some[at] for at in strangers], who=who, why=why)
            for other in (yield from talk.elsewhere("Cancel", request)):
                for at, outcome in zip(strangers, other.outcomes, strict=True):
                    outcomes[at] = outcome if outcomes[at] == UNKNOWN else outcomes[at]
        found += outcomes
    return found


def reschedule(
    talk: Conversation,
    id: str,
    *,
    delay: float | str | None = None,
    at: datetime | float | None = None,
    now: bool = False,
    priority: Priority | str | int | None = None,
    why: str = "",
) -> Steps[Rescheduled]:
    """Gives a workload that waits another due time, another priority, or both. What became of it says the answer's
    `outcome`, and `why` in words where it is not as was asked; it is changed whole, or not at all.

    delay     due after (seconds or "30s"), from now
    at        due at: a datetime or wall clock seconds, instead of `delay`
    now       due now, and no later than it was: the same as a delay of 0
    priority  a level or its name
    why       is kept with who asked

    Raises InvalidRequest for options that make no sense, and for an item of a stream, which is in no queue.
    """
    if sum((delay is not None, at is not None, now)) > 1:
        raise InvalidRequest("expected one of delay, at and now")
    request = pb.RescheduleRequest(id=_sendable(id), who=whoami(), why=reason(why))
    if now or delay is not None:
        request.delay = 0.0 if delay is None else seconds(delay)
    if at is not None:
        request.at = moment("at", at)
    if priority is not None:
        request.priority = Priority.parse(priority)
    reply = yield from talk.answered("Reschedule", request)
    if reply.outcome == UNKNOWN and id.startswith(SPOOL_ID):
        others = yield from talk.elsewhere("Reschedule", request)
        reply = next((other for other in others if other.outcome != UNKNOWN), reply)
    return rescheduled_from_wire(id, reply)


def peek(talk: Conversation, id: str, *, max_bytes: int = PEEK_BYTES) -> Steps[Peeked]:
    """Looks at a workload that has not ended: the first `max_bytes` bytes of its payload, its headers, its key. The
    gateway shows 8 MiB at most. Raises InvalidRequest for one that has ended or is not known, and for an item of a
    stream."""
    if not 0 <= max_bytes < 1 << 32:
        raise InvalidRequest(f"max_bytes is {max_bytes!r:.40}: expected 0 or more bytes")
    request = pb.PeekRequest(id=_sendable(id), max_bytes=max_bytes)
    try:
        reply = yield from talk.answered("Peek", request)
    except InvalidRequest:
        others = (yield from _peek_elsewhere(talk, request)) if id.startswith(SPOOL_ID) else None
        if others is None:
            raise
        reply = others
    return peeked_from_wire(reply)


def _peek_elsewhere(talk: Conversation, request: pb.PeekRequest) -> Steps[Any]:
    """The answer of another gateway that knows it; None: none does."""
    for _ in range(1, len(talk.addresses)):
        talk.turn()
        try:
            return (yield from talk.answered("Peek", request))
        except InvalidRequest:
            continue
    return None


def _sendable(id: str) -> str:
    """The id. Raises InvalidRequest for what no message carries: half a character."""
    try:
        id.encode()
    except UnicodeEncodeError:
        raise InvalidRequest(f"no workload {id!r:.100} is known: half a character is in no id") from None
    return id


def _chunks(ids: Iterable[str]) -> Iterator[list[str]]:
    """As many as one call takes."""
    left = list(ids)
    for start in range(0, len(left), CHUNK_IDS):
        yield left[start : start + CHUNK_IDS]


def _known(id: str, status: WorkloadStatus | None) -> WorkloadStatus:
    if status is None:
        raise InvalidRequest(f"no workload {id!r} is known: it was never submitted here, or ended long ago")
    return status


def _value(status: WorkloadStatus, reply: pb.ResultReply) -> Any:
    """The return value, or WorkloadFailed."""
    if status.state == SUCCESS:
        if not reply.has_result:
            return None
        import pydantic_core

        return pydantic_core.from_json(reply.result)
    tries = f" after {status.attempts} failed attempts" if status.attempts > 1 else ""
    raise WorkloadFailed(
        f"{status.function} {status.id} ended as {status.state}{tries}: {status.reason or 'no reason was given'}",
        id=status.id,
        outcome=status.state,
        reason=status.reason,
        attempts=status.attempts,
    )
