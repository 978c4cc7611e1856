"""Errors ↔ statuses of calls, for every carrier. A status is gRPC's: a code, a text, and in its metadata the error's
class, so that both ends raise the same one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from grpc import StatusCode

from ..model.errors import (
    Conflict,
    InvalidPayload,
    InvalidRequest,
    NotConnected,
    Overloaded,
    ResultGone,
    StaleFence,
    StoreFull,
    TailraceError,
    Unavailable,
    UnknownFunction,
)

_STATUS: list[tuple[type[TailraceError], StatusCode]] = [
    (UnknownFunction, StatusCode.NOT_FOUND),
    (InvalidPayload, StatusCode.INVALID_ARGUMENT),
    (InvalidRequest, StatusCode.INVALID_ARGUMENT),
    (Conflict, StatusCode.ALREADY_EXISTS),
    (ResultGone, StatusCode.NOT_FOUND),
    (Overloaded, StatusCode.RESOURCE_EXHAUSTED),
    (StoreFull, StatusCode.RESOURCE_EXHAUSTED),
    (StaleFence, StatusCode.FAILED_PRECONDITION),
    (NotConnected, StatusCode.UNAVAILABLE),
    (Unavailable, StatusCode.UNAVAILABLE),
]
#: Codes for: nobody answered, or not in time, or the server was stopped meanwhile (our own cancellation has none).
_AWAY = frozenset({StatusCode.UNAVAILABLE, StatusCode.DEADLINE_EXCEEDED, StatusCode.CANCELLED})
_CLASSES = {kind.__name__: kind for kind, _ in _STATUS}
#: Metadata that carries the error's class, for how many seconds an overload lasts, and that it is of a tenant.
ERROR_KEY = "tailrace-error"
RETRY_AFTER_KEY = "tailrace-retry-after"
OF_TENANT_KEY = "tailrace-of-tenant"
#: Characters of an error's message that cross: a status travels in headers, which gRPC bounds at 8 KiB.
MESSAGE_LENGTH = 1000


class CallStatus(NamedTuple):
    """The status of a call's end."""

    code: StatusCode
    details: str = ""
    metadata: tuple[tuple[str, str], ...] = ()


def status_of(error: TailraceError) -> CallStatus:
    """The status of a call whose serving side raised this error."""
    code = next((code for kind, code in _STATUS if isinstance(error, kind)), StatusCode.INTERNAL)
    kind = next((each for each in type(error).__mro__ if _CLASSES.get(each.__name__) is each), type(error))
    metadata = [(ERROR_KEY, kind.__name__)]
    if isinstance(error, Overloaded):
        metadata.append((RETRY_AFTER_KEY, repr(error.retry_after)))
        metadata += [(OF_TENANT_KEY, "yes")] if error.of_tenant else []
    return CallStatus(code, str(error)[:MESSAGE_LENGTH], tuple(metadata))


def refused(why: str) -> CallStatus:
    """The status of a call that may not be made: InvalidRequest at the caller, UNAUTHENTICATED in gRPC."""
    return CallStatus(StatusCode.UNAUTHENTICATED, why, ((ERROR_KEY, InvalidRequest.__name__),))


def error_named(name: str, message: str, retry_after: float, of_tenant: bool = False) -> TailraceError | None:
    """The error of a class that the other side named; None: errors of this name are not known here."""
    kind = _CLASSES.get(name)
    if kind is Overloaded:
        return Overloaded(message, retry_after, of_tenant)
    return None if kind is None else kind(message)


def error_of_status(status: CallStatus, address: str, reason: str = "") -> TailraceError:
    """The error that a status stands for: the other side's own, or NotConnected. `reason`: why this address was asked,
    appended to the message of NotConnected."""
    metadata: Mapping[str, str] = dict(status.metadata)
    details = status.details or str(status.code)
    retry_after = float(metadata.get(RETRY_AFTER_KEY, 1.0))
    of_tenant = OF_TENANT_KEY in metadata
    if (named := error_named(metadata.get(ERROR_KEY, ""), details, retry_after, of_tenant)) is not None:
        return named
    if status.code in _AWAY:
        why = details.rpartition(": ")[2] if details.startswith("failed to connect") else details
        return NotConnected(f"{address} does not answer ({why}); is it running?{reason}")
    return TailraceError(f"{address}: {details}")
