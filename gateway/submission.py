"""Checks of submissions: THE rule of acceptance. A request is accepted whole or refused whole, with the number
of the wrong workload and the fault.

A payload is checked against the schema that the function's workers announced, which is no stricter than they are; the
worker has the last word.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence

from ..model.errors import InvalidPayload, InvalidRequest, UnknownFunction, UserError
from ..model.function_spec import FunctionSpec
from ..model.name import EXPECTED, NAME_LENGTH, is_name
from ..model.priority import HIGHEST, LOWEST, Priority
from ..model.redrive import ORIGINS
from ..model.reference import BY_REFERENCE
from ..model.trace_context import TRACE_SIZE, carries
from ..model.units import duration_text
from ..model.workload import Kind
from ..stores.queue.admission import SUBMISSION_PREFIX
from ..stores.queue.queue import NewItem
from ..wire.convert import headers_from_wire
from ..wire.v1 import gateway_pb2 as pb
from .config import GatewayConfig
from .known_functions import KnownFunctions
from .on_done import OnDone
from .rules.highest_priority import HighestPriorities

#: Kinds whose names were checked and found good; forgotten all at once when there are more.
KINDS_KEPT = 10_000

_SUBMISSION = re.compile(r"[0-9a-f]{16,64}")


#: Raises InvalidPayload for a payload that does not fit its function.
PayloadCheck = Callable[[bytes], None]


class SubmissionRule:
    """Turns workloads of a request into items of the queue, or raises the UserError that refuses them all."""

    def __init__(
        self, config: GatewayConfig, functions: KnownFunctions, highest: HighestPriorities | None = None
    ) -> None:
        self._config = config
        self._functions = functions
        self._highest = HighestPriorities() if highest is None else highest
        self._on_done = OnDone(config, functions, self._highest)
        self._changes = 0  # of `_highest` when `_kinds` was begun
        self._kinds: dict[tuple[str, int, str, str], Kind] = {}

    def check_count(self, count: int) -> None:
        """Raises InvalidRequest for more workloads than one request may have."""
        if count > self._config.max_batch:
            raise InvalidRequest(
                f"{count} workloads in one request: at most {self._config.max_batch} are taken; send several"
            )

    def items(self, workloads: Sequence[pb.NewWorkload], now: float, before: int = 0, of: int = 0) -> list[NewItem]:
        """The items of workloads, in order. `now` is wall clock seconds. `of`: number of workloads in the whole
        request, with `before` of them before these; 0: these are all."""
        if not of:
            self.check_count(len(workloads))
            of = len(workloads)
        items: list[NewItem] = []
        self._look()
        try:
            item = self._item
            for workload in workloads:
                items.append(item(workload, now))
        except UserError as error:
            raise refused(error, before + len(items), of) from None
        return items

    def form(self, workload: pb.NewWorkload, now: float) -> tuple[NewItem, PayloadCheck]:
        """The common part of workloads that differ in payloads and tokens alone: an item without either, and the check
        of the payloads."""
        if workload.payload or workload.key or workload.dedupe_key or workload.submission_id:
            raise InvalidRequest("a form of workloads has no payload, key, dedupe_key or submission_id")
        self._look()
        spec = self._spec(workload.function)
        arguments = self._functions.checker(spec) if spec.arguments else None
        most = self._config.max_payload

        def check(payload: bytes) -> None:
            if len(payload) > most:
                raise self._too_large(spec.name, payload)
            if arguments is not None:
                arguments(payload)

        return self._said(workload, spec, b"", now), check

    def _look(self) -> None:
        """Forgets kinds that were checked before quotas changed."""
        if self._changes != self._highest.changes:
            self._changes = self._highest.changes
            self._kinds.clear()

    def _item(self, workload: pb.NewWorkload, now: float) -> NewItem:
        payload = workload.payload
        if len(payload) > self._config.max_payload:
            raise self._too_large(workload.function, payload)
        spec = self._spec(workload.function)
        if spec.arguments:
            self._functions.check_arguments(spec, payload)
        return self._said(workload, spec, payload, now)

    def _spec(self, function: str) -> FunctionSpec:
        spec = self._functions.get(function)
        if spec is None:
            raise UnknownFunction(self._functions.unknown(function))
        return spec

    def _too_large(self, function: str, payload: bytes) -> InvalidPayload:
        return InvalidPayload(
            f"{function}: the payload has {len(payload)} bytes, at most {self._config.max_payload} are "
            f"taken: {BY_REFERENCE}"
        )

    def _said(self, workload: pb.NewWorkload, spec: FunctionSpec, payload: bytes, now: float) -> NewItem:
        # Few workloads have more than a kind; the others do not pay for these checks.
        kind = self._kind(workload, spec)
        due = self._due(workload, now) if workload.delay or workload.HasField("at") else 0.0
        expires_at = _deadline(workload, due or now) if workload.HasField("expires_after") else 0.0
        key = _short("key", workload.key)
        headers = self._headers(workload) if workload.headers else ()
        on_done = self._on_done.callback(workload.on_done, kind.priority, kind.tenant) if workload.on_done else None
        return NewItem(kind, payload, due, key, headers, _dedupe_key(workload), expires_at, on_done)

    def _kind(self, workload: pb.NewWorkload, spec: FunctionSpec) -> Kind:
        rank = workload.priority if workload.HasField("priority") else int(spec.priority)
        named = (spec.name, rank, workload.collection, workload.tenant)
        kind = self._kinds.get(named)
        if kind is None:
            rank_of(rank)
            _label("collection", workload.collection)
            _label("tenant", workload.tenant)
            highest = self._highest.of(spec.name, workload.tenant)
            if rank < highest:  # not remembered: whether it was asked for decides
                if workload.HasField("priority"):
                    raise InvalidRequest(too_urgent(rank, highest, spec.name, workload.tenant))
                return Kind(spec.name, highest, workload.collection, workload.tenant)
            if len(self._kinds) >= KINDS_KEPT:
                self._kinds.clear()
            kind = self._kinds[named] = Kind(*named)
        return kind

    def _due(self, workload: pb.NewWorkload, now: float) -> float:
        """The due time of a workload, in wall clock seconds; 0: now."""
        at = workload.at if workload.HasField("at") else None
        return due_time(workload.delay, at, self._config.max_delay, now)

    def _headers(self, workload: pb.NewWorkload) -> tuple[tuple[str, str], ...]:
        headers = tuple([each for each in headers_from_wire(workload.headers) if each[0] not in ORIGINS])
        size = sum(len(name.encode()) + len(value.encode()) for name, value in headers)
        if size > self._config.max_headers + (TRACE_SIZE if carries(headers) else 0):
            raise InvalidRequest(f"the headers have {size} bytes: at most {self._config.max_headers} are taken")
        return headers


def due_time(delay: float, at: float | None, most: float, now: float) -> float:
    """Wall clock seconds of something due after `delay` seconds or at a time; 0: now. Raises InvalidRequest for both,
    and for a time more than `most` seconds ahead."""
    if at is not None:
        if delay:
            raise InvalidRequest("delay and at are both given: expected one of them")
        if not 0 <= at < math.inf:
            raise InvalidRequest(f"at is {at}: expected wall clock seconds since 1970")
        delay = max(0.0, at - now)
    if not 0 <= delay < math.inf:
        raise InvalidRequest(f"the delay is {delay:g} seconds: expected zero or more")
    if delay > most:
        raise InvalidRequest(
            f"the delay is {duration_text(min(delay, 1e12))}: at most {duration_text(most)} is taken (`max_delay` of "
            "the gateway)"
        )
    return now + delay if delay else 0.0


def rank_of(priority: int) -> int:
    """The rank, checked. Raises InvalidRequest for a rank that no priority has."""
    if priority > LOWEST:
        raise InvalidRequest(f"priority is {priority}: expected 0 ({HIGHEST.label}) to {int(LOWEST)} ({LOWEST.label})")
    return priority


def too_urgent(rank: int, highest: int, function: str, tenant: str) -> str:
    """The refusal of a priority above the highest one of a function and tenant."""
    whose = f"workloads of {function!r}" + (f" for the tenant {tenant!r}" if tenant else "")
    return (
        f"priority is {Priority(rank).label}: {whose} may have {Priority(highest).label} at most "
        "(`highest` of a quota: `tailrace quota list`); ask for that, or leave the priority out"
    )


def refused(error: UserError, place: int, of: int) -> UserError:
    """The error of a request of `of` workloads that is refused for the one at this place."""
    return error if of == 1 else type(error)(f"workload {place} of {of}: {error}; none was accepted")


def submission_key(token: str) -> str:
    """The key by which the queue recognises a workload with this token; empty: none. Raises InvalidRequest."""
    if not token:
        return ""
    if not _SUBMISSION.fullmatch(token):
        raise InvalidRequest("submission_id must be 16 to 64 hexadecimal digits")
    return SUBMISSION_PREFIX + token


def _deadline(workload: pb.NewWorkload, due: float) -> float:
    if not 0 <= workload.expires_after < math.inf:
        raise InvalidRequest(f"expires_after is {workload.expires_after}: expected zero or more seconds")
    return due + workload.expires_after


def _label(what: str, value: str) -> None:
    if value and not is_name(value):
        raise InvalidRequest(f"{what} is {value[:NAME_LENGTH]!r}: {EXPECTED}")


def _short(what: str, value: str) -> str:
    if len(value) > NAME_LENGTH:
        raise InvalidRequest(f"{what} has {len(value)} characters: at most {NAME_LENGTH} are taken")
    if "\0" in value:
        raise InvalidRequest(f"{what} is {value!r}, which has a NUL: use another one, such as a hash of it")
    return value


def _dedupe_key(workload: pb.NewWorkload) -> str:
    key = workload.dedupe_key
    if key:
        if key.startswith(SUBMISSION_PREFIX):
            raise InvalidRequest(f"dedupe_key may not begin with {SUBMISSION_PREFIX!r}, the platform's own prefix")
        return _short("dedupe_key", key)
    return submission_key(workload.submission_id)
