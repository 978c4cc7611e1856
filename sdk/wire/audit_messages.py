"""Audits ↔ messages, both ways. Nothing here waits or decides."""

from __future__ import annotations

from ..model.audit import Audit
from .v1 import gateway_pb2 as pb


def audit_to_wire(audit: Audit) -> pb.Audit:
    """An audit as a message."""
    return pb.Audit(
        tailer=audit.tailer,
        partition=audit.partition,
        first=audit.first,
        end=audit.end,
        counts=[pb.CountByName(name=name, count=count) for name, count in audit.counts.items()],
        missing=audit.missing,
        doubled=audit.doubled,
        missing_count=audit.missing_count,
        doubled_count=audit.doubled_count,
        faults=audit.faults,
        items=audit.items,
    )


def audit_from_wire(message: pb.Audit) -> Audit:
    """The inverse of `audit_to_wire`."""
    return Audit(
        tailer=message.tailer,
        partition=message.partition,
        first=message.first,
        end=message.end,
        counts={entry.name: entry.count for entry in message.counts},
        missing=list(message.missing),
        doubled=list(message.doubled),
        missing_count=message.missing_count,
        doubled_count=message.doubled_count,
        faults=list(message.faults),
        items=message.items if message.HasField("items") else None,
    )
