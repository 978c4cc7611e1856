"""Functions that are traced: one fails at first, one makes spans of its own, one submits."""

from __future__ import annotations

import logging

import tailrace

LOG = logging.getLogger("shop")


@tailrace.function(retry=tailrace.Retry(backoff="list", delays=(0.2,), max_attempts=5))
async def flaky(ctx: tailrace.Context, fail_first: int = 1) -> str:
    """Fails its first attempts, within a span of its own."""
    from opentelemetry import trace

    with trace.get_tracer("shop").start_as_current_span("charge the card"):
        LOG.warning("charging")
        ctx.log.warning("charging, says its context")
    if ctx.attempt <= fail_first:
        raise RuntimeError("the bank does not answer")
    return "done"


@tailrace.function
def plain(name: str) -> str:
    """Runs in a thread, within a span of its own."""
    from opentelemetry import trace

    with trace.get_tracer("shop").start_as_current_span("greet"):
        return f"hello {name}"
