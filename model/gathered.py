"""Gathered results that fit no payload: the payload names the jobs that they are of, with counts, and the worker that
runs the item reads them by pages."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from .errors import InvalidPayload

#: The beginning of such a payload, by which it is told from one with arguments.
BEGIN = b'{"tailrace.gathered":'


class GatheredJob(NamedTuple):
    """A job whose results are gathered: its name, and how its items ended."""

    job: str
    succeeded: int
    failed: int


class GatheredResults(NamedTuple):
    """Results that lie with their jobs: the tree and the jobs that they are of, and the bytes before and behind a list
    of them that would make it a payload."""

    tree: str
    jobs: tuple[GatheredJob, ...]
    before: bytes
    behind: bytes

    @property
    def total(self) -> int:
        """Number of results."""
        return sum(each.succeeded for each in self.jobs)

    def encode(self) -> bytes:
        """The payload."""
        told = {
            "tree": self.tree,
            "jobs": [each._asdict() for each in self.jobs],
            "before": self.before.decode(),
            "behind": self.behind.decode(),
        }
        return BEGIN + json.dumps(told, separators=(",", ":"), ensure_ascii=False).encode() + b"}"

    def payload_of(self, results: Sequence[bytes]) -> bytes:
        """The payload that some of the results would make."""
        return self.before + b"[" + b",".join(results) + b"]" + self.behind


def gathered_results(payload: bytes) -> GatheredResults:
    """Reads the gathered results that a payload names instead of holding them. Raises InvalidPayload."""
    try:
        value: Any = json.loads(payload)["tailrace.gathered"]
        jobs = tuple(GatheredJob(each["job"], each["succeeded"], each["failed"]) for each in value["jobs"])
        return GatheredResults(value["tree"], jobs, value["before"].encode(), value["behind"].encode())
    except (ValueError, TypeError, KeyError, AttributeError):
        raise InvalidPayload(
            "the payload names gathered results but cannot be read: expected tree, jobs, before and behind"
        ) from None
