"""Telemetry on its way out, with every process real: metrics reach a collector, and one that hangs or refuses costs no
work anything."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
from servers.collector import Collector

import tailrace
from tailrace.assembly.parts import DelaySettings, GatewaySettings, StoreSettings, TailersSettings
from tailrace.assembly.platform import Platform
from tailrace.assembly.processes import spawn, stop
from tailrace.bench.process import free_ports

FUNCTIONS = str(Path(__file__).parent / "traced_functions.py")


@pytest.fixture
async def platform(tmp_path: Path, collector: Collector, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Platform]:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.endpoint)
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "always_on")
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "50")
    monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", "200")
    config = tmp_path / "configs"
    config.mkdir()
    (config / "gateway.yaml").write_text("metrics_listen: 127.0.0.1:0\n")
    running = Platform(tmp_path / "data", [FUNCTIONS], config, heartbeat=0.5, worker={"executors": 1})
    try:
        await running.start()
        yield running
        await running.drain(1)
    finally:
        await running.stop()


async def test_the_same_numbers_reach_a_collector(platform: Platform, collector: Collector) -> None:
    async with tailrace.AsyncClient(platform.gateway_address) as client:
        handles = [await client.submit("plain", name="Ann") for _ in range(20)]
        assert await handles[-1].result(timeout=30) == "hello Ann"
    names = {
        "faas.invoke_duration",
        "tailrace.start.delay",
        "tailrace.gateway.submit_duration",
        "tailrace.gateway.submissions",
        "tailrace.scheduler.ended",
        "tailrace.queue.items",
        "tailrace.telemetry.spans_exported",
    }

    def all_ran() -> bool:
        if not names <= collector.metrics.keys():
            return False
        points = collector.metrics["faas.invoke_duration"][-1].histogram.data_points
        return sum(point.count for point in points) == 20

    assert await asyncio.to_thread(collector.wait, all_ran), sorted(names - collector.metrics.keys())
    duration = collector.metrics["faas.invoke_duration"][-1]
    [point] = duration.histogram.data_points
    assert duration.unit == "s" and duration.histogram.aggregation_temporality == 2  # cumulative
    assert {each.key: each.value.string_value for each in point.attributes} == {
        "function": "plain",
        "outcome": "success",
    }
    assert sum(point.bucket_counts) == 20 and len(point.bucket_counts) == len(point.explicit_bounds) + 1
    # And an example of a run leads to its trace
    traces = {span.trace_id for span in collector.spans if span.name == "plain"}
    assert {exemplar.trace_id.hex() for exemplar in point.exemplars} <= traces and point.exemplars
    submitted = collector.metrics["tailrace.gateway.submissions"][-1].sum
    assert submitted.is_monotonic and sum(each.as_int for each in submitted.data_points) == 20


async def test_a_collector_that_hangs_or_refuses_costs_work_nothing(platform: Platform, collector: Collector) -> None:
    for hurt in (collector.hold.clear, lambda: setattr(collector, "status", 500)):
        # Given a collector that does not answer, or refuses
        hurt()
        # When work is done, then it is done as ever
        async with tailrace.AsyncClient(platform.gateway_address) as client, asyncio.timeout(30):
            handles = [await client.submit("plain", name="Ann") for _ in range(50)]
            for handle in handles:
                assert await handle.result(timeout=20) == "hello Ann"
        collector.hold.set()


async def test_every_part_that_runs_apart_answers_for_its_numbers(tmp_path: Path) -> None:
    config = tmp_path / "configs"
    config.mkdir()
    ports = free_ports(4)
    for name, port in zip(("stores", "delay", "gateway"), ports, strict=False):
        (config / f"{name}.yaml").write_text(f"metrics_listen: 127.0.0.1:{port}\n")
    orders = tmp_path / "orders.yaml"
    orders.write_text("name: orders\nsource: {kind: log, stream: orders}\nfunction: plain\n")
    store = await spawn(StoreSettings(config=config, data=tmp_path / "data", listen="127.0.0.1:0"))
    children = [store]
    try:
        at = store.ready["address"]
        children.append(await spawn(DelaySettings(config=config, store=at, listen="127.0.0.1:0")))
        children.append(await spawn(GatewaySettings(config=config, store=at, listen="127.0.0.1:0")))
        tailers = TailersSettings(
            config=config,
            files=(orders,),
            scheduler="127.0.0.1:1",
            delay=children[1].ready["address"],
            store=at,
            metrics=f"127.0.0.1:{ports[3]}",
        )
        children.append(await spawn(tailers))
        async with aiohttp.ClientSession() as session:
            for port, name in zip(
                ports,
                (
                    "tailrace_store_troubles",
                    "tailrace_delay_items",
                    "tailrace_queue_items",
                    "tailrace_tailer_read_total",
                ),
                strict=True,
            ):
                async with session.get(f"http://127.0.0.1:{port}/metrics") as answer:
                    assert answer.status == 200
                    assert name in await answer.text()
    finally:
        for child in reversed(children):
            await stop(child, 5.0)
