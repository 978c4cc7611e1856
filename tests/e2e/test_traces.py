"""Traces, with every process real and a collector of OpenTelemetry's protocol: one item is followed from its submission
or its record through failure, delay, a retry on another worker and success."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from servers.collector import Collector, Seen

import tailrace
from tailrace.assembly.parts import WorkerSettings
from tailrace.assembly.platform import Platform
from tailrace.assembly.processes import Child, spawn, stop
from tailrace.stores.log.log import Record
from tailrace.stores.remote import RemoteLog

FUNCTIONS = str(Path(__file__).parent / "traced_functions.py")
#: Starts a worker of this name, once the one before has ended.
Start = Callable[[str], Awaitable[None]]
LOG = """\
name: orders
source: {kind: log, stream: orders}
function: flaky
results: true
"""
TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = "b7ad6b7169203331"
TRACEPARENT = f"00-{TRACE}-{PARENT}-01"


@pytest.fixture
async def platform(tmp_path: Path, collector: Collector, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Platform]:
    """A platform without a worker, whose parts export all that is sampled by others."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.endpoint)
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "parentbased_always_off")
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "50")
    (tmp_path / "orders.yaml").write_text(LOG)
    running = Platform(tmp_path / "data", tailers=[tmp_path / "orders.yaml"], heartbeat=0.5)
    try:
        await running.start()
        yield running
        await running.drain(1)
    finally:
        await running.stop()


@pytest.fixture
async def worker(platform: Platform) -> AsyncIterator[Start]:
    """Starts workers by name, one after the other."""
    running: list[Child] = []

    async def start(name: str) -> None:
        while running:
            await stop(running.pop(), 10.0)
        settings = WorkerSettings(
            config=None,
            modules=(FUNCTIONS,),
            schedulers=(platform.scheduler_address,),
            gateway=platform.gateway_address,
            heartbeat=0.5,
            changes={"name": name, "executors": 1},
        )
        running.append(await spawn(settings))

    yield start
    while running:
        await stop(running.pop(), 10.0)


def named(spans: list[Seen], name: str) -> list[Seen]:
    return [span for span in spans if span.name == name]


async def test_a_records_trace_goes_through_failure_delay_and_a_retry_on_another_worker(
    platform: Platform, worker: Start, collector: Collector
) -> None:
    # Given a record that belongs to a sampled trace, and others that do not
    records = [Record(b"{}")] * 20
    records[7] = Record(b'{"fail_first": 1}', headers=(("traceparent", TRACEPARENT),))
    await worker("first")
    async with RemoteLog(platform.store_address) as log:
        await log.append("orders", 0, records)
    # When it fails at one worker and is tried again by another
    assert await asyncio.to_thread(collector.wait, lambda: named(collector.of(TRACE), "park orders"))
    await worker("second")
    # Each process exports on its own: spans of one attempt come in any order
    for name in ("attempt flaky", "schedule flaky", "flaky", "charge the card"):
        assert await asyncio.to_thread(collector.wait, lambda n=name: len(named(collector.of(TRACE), n)) >= 2)
    delayed = lambda: [span for span in collector.of(TRACE) if span.name.startswith("delay ")]  # noqa: E731
    assert await asyncio.to_thread(collector.wait, delayed)
    assert await asyncio.to_thread(collector.wait, lambda: named(collector.spans, "poll orders"))
    spans = collector.of(TRACE)
    # Then both attempts are under the record's own span, and the second is linked with the first
    first, second = named(spans, "attempt flaky")
    assert (first.parent, second.parent) == (PARENT, PARENT)
    assert (first.failed, second.failed) == (True, False)
    assert second.links == [(TRACE, first.span_id)] and not first.links
    assert first.attributes["tailrace.outcome"] == "retry" and second.attributes["tailrace.outcome"] == "success"
    # And under each is what the scheduler did and what the function did, at its own worker
    for attempt, at in ((first, "first"), (second, "second")):
        under = [span for span in spans if span.parent == attempt.span_id]
        assert at in [span.attributes.get("tailrace.worker") for span in named(under, "schedule flaky")]
        [run] = named(under, "flaky")
        assert run.attributes["faas.invocation_id"] == f"orders/0/7/{attempt.attributes['tailrace.attempt']}"
        assert run.failed is attempt.failed and run.service == "tailrace-executor"
        # And a span of the function's own is a child of its run
        assert [span.name for span in spans if span.parent == run.span_id] == ["charge the card"]
    # And the delay between them is told by whoever kept it: durable, then rung by rung
    assert [span.parent for span in named(spans, "park orders")] == [first.span_id]
    delays = delayed()
    assert {span.parent for span in delays} == {first.span_id}
    assert min(span.end for span in delays) <= second.start
    # And items that nobody sampled have no spans, though those that were handed out with them are counted
    assert {span.trace_id for span in collector.spans if span.attributes.get("messaging.message.id")} == {TRACE}
    polls = [span for span in collector.spans if span.name == "poll orders"]
    assert [link for span in polls for link in span.links] == [(TRACE, PARENT)] * len(polls)
    assert polls[0].attributes["messaging.batch.message_count"] == 20


async def test_a_submission_goes_on_in_the_trace_of_whoever_submits(
    platform: Platform, worker: Start, collector: Collector
) -> None:
    # Given a program that traces itself
    provider = TracerProvider(sampler=ALWAYS_ON)
    await worker("only")
    async with tailrace.AsyncClient(platform.gateway_address) as client:
        # When it submits within a span of its own
        with provider.get_tracer("web").start_as_current_span("checkout") as checkout:
            handle = await client.submit("plain", name="Ann")
        assert await handle.result(timeout=20) == "hello Ann"
    trace_id = f"{checkout.get_span_context().trace_id:032x}"
    for name in ("attempt plain", "plain", "greet"):
        assert await asyncio.to_thread(collector.wait, lambda n=name: named(collector.of(trace_id), n))
    # Then the call is under that span, the attempt under the call, the run under the attempt, and so on
    spans = collector.of(trace_id)
    [attempt], [run], [greet] = named(spans, "attempt plain"), named(spans, "plain"), named(spans, "greet")
    assert attempt.parent == f"{checkout.get_span_context().span_id:016x}"
    assert (run.parent, greet.parent) == (attempt.span_id, run.span_id)
    assert attempt.attributes["messaging.message.id"] == handle.id
