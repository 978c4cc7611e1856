"""A function whose downstream throttles, and that fails now and then, so that it has retries."""

from __future__ import annotations

import itertools

import tailrace

CALLS = itertools.count(1)


@tailrace.function(downstreams=["smtp"], retry=tailrace.Retry(backoff="list", delays=(0.1,), max_attempts=50))
async def post() -> str:
    """Throttles one of five calls and fails one; now and then it names a downstream that is not declared."""
    call = next(CALLS)
    if call % 5 == 1:
        raise tailrace.Throttled("421 try later", downstream="smtp" if call % 10 == 1 else "imap")
    if call % 5 == 2:
        raise RuntimeError("the server hung up")
    return "sent"
