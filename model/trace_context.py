"""Trace context of W3C: which trace an item belongs to, and whether it is sampled. Decided once, then carried along.

An item whose source says nothing of a trace may be sampled by its tailer. That decision, the trace and its first span
follow from the item's id alone: whoever hands the item out again comes to the same ones, and nothing need be stored.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import NamedTuple
from zlib import crc32

from .workload import Headers

#: The headers, by their names in W3C Trace Context.
TRACEPARENT = "traceparent"
TRACESTATE = "tracestate"
#: The longest list of vendors' own values that is carried on, characters; W3C asks for no more.
TRACESTATE_LENGTH = 512
#: Bytes of both headers: so many more may be there than whoever submits knows of.
TRACE_SIZE = len(TRACEPARENT) + 55 + len(TRACESTATE) + TRACESTATE_LENGTH

#: version, trace id, parent id, flags; a later version may say more behind a further hyphen.
_FORM = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?", re.ASCII)
#: A prime. What a check sum leaves when divided by it is as likely to be any number below, whatever ids look like.
_SHARES = 1_000_003


class TraceContext(NamedTuple):
    """A span as others name it: its trace, itself, and whether the trace is sampled."""

    trace_id: int
    span_id: int
    sampled: bool

    @property
    def traceparent(self) -> str:
        """The header's value."""
        return f"00-{self.trace_id:032x}-{self.span_id:016x}-{self.sampled:02x}"


def parsed(traceparent: str) -> TraceContext | None:
    """The context that a header's value says; None for one that W3C calls invalid."""
    found = _FORM.fullmatch(traceparent)
    if found is None:
        return None
    version, trace_id, span_id, flags, rest = found.groups()
    trace, span = int(trace_id, 16), int(span_id, 16)
    if version == "ff" or (version == "00" and rest) or not trace or not span:
        return None
    return TraceContext(trace, span, bool(int(flags, 16) & 1))


def context_in(headers: Iterable[tuple[str, str]]) -> TraceContext | None:
    """The context that an item carries; None: it carries none that can be read."""
    for name, value in headers:
        if name == TRACEPARENT:
            return parsed(value)
    return None


def carries(headers: Headers) -> bool:
    """Whether headers say anything of a trace: then nobody else decides."""
    return any(name == TRACEPARENT for name, _ in headers)


def sampled_by_id(ids: Sequence[str], ratio: float) -> list[int]:
    """The indexes of the ids that are sampled at a ratio from 0 to 1. An id that is sampled at one ratio is at every
    higher one."""
    if ratio <= 0:
        return []
    most = ratio * _SHARES
    try:
        checks = list(map(crc32, map(str.encode, ids)))
    except UnicodeEncodeError:  # a lone surrogate
        checks = [crc32(id.encode("utf-8", "replace")) for id in ids]
    return [at for at, check in enumerate(checks) if check % _SHARES < most]


def context_of_id(id: str) -> TraceContext:
    """The context of a sampled item of which its source says none."""
    seed = id.encode("utf-8", "replace")
    return TraceContext(_number(seed, b"trace", 16), _number(seed, b"first span", 8), True)


def attempt_span(context: TraceContext, id: str, attempt: int) -> int:
    """The span of an attempt. Every part that knows the item comes to the same one, so none need tell the others."""
    seed = b"%032x%016x%d" % (context.trace_id, context.span_id, attempt)
    return _number(seed + id.encode("utf-8", "replace"), b"attempt", 8)


def _number(seed: bytes, what: bytes, size: int) -> int:
    return int.from_bytes(blake2b(seed, digest_size=size, person=what).digest(), "big") or 1
