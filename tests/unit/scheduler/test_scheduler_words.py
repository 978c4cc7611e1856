"""The scheduler never learns what a source is: no kind of source is named in its code or its protocol."""

from __future__ import annotations

import re
from pathlib import Path

import tailrace.scheduler
import tailrace.wire.v1

KINDS = re.compile(
    r"(?<![a-z])(queues?|logs?|kafka|director(y|ies)|redis|streams?|s3|sqs|objects?|postgres(ql)?|sqlite|rabbitmq|"
    r"tables?|folders?|cron|topics?|offsets?|buckets?)(?![a-z])",
    re.IGNORECASE,
)
#: Other meanings of the words: gRPC's keyword, what carries sessions, a token bucket, and how errors are written down.
MEANT_OTHERWISE = re.compile(
    r"rpc \w+\((stream )?\w+\) returns \(stream \w+\);|serve_streams|wire\.stream import [\w, ]+|connection: Stream|"
    r"_LOG\b|token.?bucket|\bbucket\b",
    re.I,
)


def test_no_kind_of_source_is_named() -> None:
    folder = Path(tailrace.scheduler.__file__).parent
    proto = Path(tailrace.wire.v1.__file__).parent / "scheduler.proto"
    found = []
    for path in [*sorted(folder.rglob("*.py")), proto]:
        for number, line in enumerate(path.read_text().splitlines(), 1):
            match = KINDS.search(MEANT_OTHERWISE.sub("", line))
            if match:
                found.append(f"{path.name}:{number}: {match[0]}")
    assert found == []
