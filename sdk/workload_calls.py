"""Following workloads to their end: calls of a client to a gateway, as steps of a conversation. The client gives
`talk`; it is no argument of its methods."""

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
#: Longest wait (seconds) of one call for a result, and seconds beyond it for the answer.
LONGEST_WAIT = 30.0
ANSWER_MARGIN = 10.0
#: Bytes of a payload that `peek` asks for.
PEEK_BYTES = 64 << 10
#: Prefix of the ids of spooled workloads, and the word of a gateway for an id that it does not know.
SPOOL_ID = "spool-"
UNKNOWN = "unknown"


def status(talk: Conversation, id: str) -> Steps[WorkloadStatus]:
    """The present state of a workload. Raises InvalidRequest when its id is not known."""
    why: dict[str, str] = {}
    [found] = yield from status_many(talk, [id], tries=True, why=why)
    return _known(id, found, why.get(id, ""))


def status_many(
    talk: Conversation, ids: Iterable[str], *, tries: bool = False, why: dict[str, str] | None = None
) -> Steps[list[WorkloadStatus | None]]:
    """The present state of each workload, None for an unknown id; with `tries` also the end of each attempt. Into `why`
    goes what may have become of unknown ones, where the gateway knows of a loss."""
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
        if why is not None:
            why.update((each.id, each.reason) for each in reply.statuses if each.reason and not each.known)
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

    function, tenant  the workload's own; empty: any
    states            names of states, as in `WorkloadStatus.state`; empty: any
    key               the ordering key, of workloads that have not ended
    since, until      submitted from and before: wall clock seconds or a datetime
    after             the id of the last workload of the answer before, to go on behind it

    Ended workloads are found as long as the queue keeps them (`retention` of stores.yaml). Spooled workloads are not
    in the queue yet. Raises InvalidRequest for an unknown state or a limit below 1.
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
    """Waits for the end of a workload and returns its value (None also when its result is not kept any more).

    timeout  seconds or "10s"; None: no limit, or inside a function the rest of its own timeout, else 10 minutes

    Raises WorkloadFailed with the reason when it did not succeed, TimeoutError after `timeout` (the workload goes on),
    and InvalidRequest for an unknown id. Inside a function also InvalidRequest when its run cannot wait, and Throttled
    when too many runs wait already.
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
        status = _known(id, status_from_wire(reply.status), reply.status.reason)
        if status.ended:
            return _value(status, reply)
        if end is not None and talk.now() >= end:
            raise TimeoutError(
                f"{status.function} {id} has not ended within {patience:g} seconds: it is {status.state}"
                f"{f' after {status.attempts} failed attempts ({status.reason})' if status.attempts else ''}. "
                "It goes on; ask again later, or cancel it"
            )


def cancel(talk: Conversation, id: str, *, why: str = "") -> Steps[str]:
    """Asks for the end of a workload. Returns `cancelled` (it had not started), `requested` (its worker will be told),
    `ended` (it was over) or `unknown`. `why` is kept with the name of the caller."""
    return (yield from cancel_many(talk, [id], why=why))[0]


def cancel_many(talk: Conversation, ids: Iterable[str], *, why: str = "") -> Steps[list[str]]:
    """Asks for the end of several workloads. Returns one word for each, as `cancel` does."""
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
    """Gives a waiting workload another due time, another priority, or both: both are changed, or neither. The answer's
    `outcome` says how it went, and its `why` explains one that is not as asked.

    delay     due after (seconds or "30s"), from now
    at        due at: a datetime or wall clock seconds, instead of `delay`
    now       due now, and no later than it was: the same as a delay of 0
    priority  a level or its name
    why       a reason, kept with the name of the caller

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
    """Looks at a workload that has not ended: the first `max_bytes` bytes of its payload (64 KiB by default, 8 MiB at
    most), its headers, its key. Raises InvalidRequest for one that has ended or is not known, and for an item of a
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
    """The answer of another gateway that knows the workload; None: none does."""
    for _ in range(1, len(talk.addresses)):
        talk.turn()
        try:
            return (yield from talk.answered("Peek", request))
        except InvalidRequest:
            continue
    return None


def _sendable(id: str) -> str:
    """The id, checked. Raises InvalidRequest for half a character, which no message carries."""
    try:
        id.encode()
    except UnicodeEncodeError:
        raise InvalidRequest(f"no workload {id!r:.100} is known: half a character is in no id") from None
    return id


def _chunks(ids: Iterable[str]) -> Iterator[list[str]]:
    """Yields the ids in parts of at most CHUNK_IDS."""
    left = list(ids)
    for start in range(0, len(left), CHUNK_IDS):
        yield left[start : start + CHUNK_IDS]


def _known(id: str, status: WorkloadStatus | None, why: str) -> WorkloadStatus:
    if status is None:
        told = f", or it is lost: {why}" if why else ""
        raise InvalidRequest(f"no workload {id!r} is known: it was never submitted here, or ended long ago{told}")
    return status


def _value(status: WorkloadStatus, reply: pb.ResultReply) -> Any:
    """The return value. Raises WorkloadFailed for a workload that did not succeed."""
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
