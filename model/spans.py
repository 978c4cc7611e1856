"""Spans: THE catalogue of what the parts tell of sampled items, as plain records that an exporter makes OTLP of.

    span                kind      who       from → to                                          under, and linked with
    send FUNCTION       producer  gateway   asked to store it → durable                        the caller's span
    receive TAILER      consumer  tailer    in its source → handed out, of what it sampled     nothing: it is the first
    poll TAILER         client    tailer    handed out together                                nothing; each of these
    attempt FUNCTION    internal  tailer    handed out → its outcome                           the first; attempt before
    schedule FUNCTION   internal  scheduler pushed → sent to a worker, or back with a reason   the attempt
    FUNCTION            consumer  executor  the function runs                                  the attempt
    park TAILER         client    tailer    failed → durable in the delay service              the attempt
    delay RUNG          internal  mover     entered a rung → left it                           the attempt that failed

Names and attributes are those of OpenTelemetry's conventions for messaging and functions as a service where they have
one; our own begin with `tailrace.`.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

INTERNAL: Final = 0
CLIENT: Final = 2
PRODUCER: Final = 3
CONSUMER: Final = 4

# Attributes of the conventions.
SYSTEM: Final = "messaging.system"
OPERATION: Final = "messaging.operation.name"
OPERATION_TYPE: Final = "messaging.operation.type"
DESTINATION: Final = "messaging.destination.name"
PARTITION: Final = "messaging.destination.partition.id"
MESSAGE_ID: Final = "messaging.message.id"
BATCH_COUNT: Final = "messaging.batch.message_count"
TRIGGER: Final = "faas.trigger"
INVOCATION: Final = "faas.invocation_id"
ERROR_TYPE: Final = "error.type"
# Our own.
FUNCTION: Final = "tailrace.function"
PRIORITY: Final = "tailrace.priority"
ATTEMPT: Final = "tailrace.attempt"
FENCE: Final = "tailrace.fence"
OUTCOME: Final = "tailrace.outcome"
REASON: Final = "tailrace.reason"
TAILER: Final = "tailrace.tailer"
WORKER: Final = "tailrace.worker"
RUNG: Final = "tailrace.delay.rung"

#: Characters of a reason that a span keeps.
REASON_LENGTH = 200

#: Something that happened within a span: its name, when, and what there is to say.
Event = tuple[str, float, dict[str, Any]]
#: Names a span: its trace and itself.
SpanName = tuple[int, int]


class Span(msgspec.Struct, frozen=True, gc=False):
    """A span that is over. `parent` 0: it has none; times are wall clock seconds; `error` empty: it went well."""

    name: str
    kind: int
    trace_id: int
    span_id: int
    parent: int
    start: float
    end: float
    attributes: dict[str, Any]
    links: tuple[SpanName, ...] = ()
    error: str = ""
    events: tuple[Event, ...] = ()


def of_item(function: str, id: str, operation: str = "", operation_type: str = "") -> dict[str, Any]:
    """The attributes of every span about one item."""
    found = {SYSTEM: "tailrace", DESTINATION: function, MESSAGE_ID: id}
    if operation:
        found[OPERATION] = operation
    if operation_type:
        found[OPERATION_TYPE] = operation_type
    return found
