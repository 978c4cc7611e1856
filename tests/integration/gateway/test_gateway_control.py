"""Gates, quotas, the function registry and its watchers; overview, health."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

import tailrace
from tailrace.foundation.identity import whoami
from tailrace.gateway.environment import DeclaredFiles, Neighbours
from tailrace.gateway.quotas import QuotasConfig
from tailrace.gateway.server import GatewayServer
from tailrace.model.dead_letter import DeadLetter
from tailrace.model.function_spec import FunctionSpec
from tailrace.model.gate import Gate
from tailrace.model.limits import Quota, Snapshot
from tailrace.model.overview import Overview, TailerOverview
from tailrace.model.workload import Kind
from tailrace.wire.channel import dial
from tailrace.wire.gateway import SERVICE, GatewayClient, watch
from tailrace.wire.v1 import common_pb2
from tailrace.wire.v1 import gateway_pb2 as pb


async def test_a_registered_function_may_be_submitted_at_once(
    operator: GatewayClient, client: tailrace.AsyncClient
) -> None:
    spec = FunctionSpec("fresh", retry=tailrace.Retry(max_attempts=3), timeout=5.0, description="New.")
    await operator.register_functions("worker-1", [spec])
    assert (await client.submit("fresh")).id
    assert spec in await operator.functions()
    assert [each.name for each in await operator.functions()] == ["add", "fresh", "send_email"]


async def test_gates_are_set_replaced_and_removed(operator: GatewayClient) -> None:
    await operator.set_gate(Gate("add", "", "pause", "ann@host", "incident 7"))
    await operator.set_gate(Gate("add", "", "drop", "bob@host", "test data"))
    await operator.set_gate(Gate("add", "nightly", "pause"))
    gates = (await operator.limits()).gates
    assert sorted((gate.collection, gate.action, gate.who) for gate in gates) == [
        ("", "drop", "bob@host"),
        ("nightly", "pause", whoami()),
    ]
    assert all(gate.since > 0 for gate in gates)
    await operator.set_gate(Gate("add", "", "resume"))
    await operator.set_gate(Gate("add", "nightly", "resume"))
    assert (await operator.limits()).gates == []


async def test_what_is_not_gated_is_not_said_to_be_resumed(operator: GatewayClient) -> None:
    # Given a gate of one tenant of a function
    await operator.set_gate(Gate("add", "", "pause", "ann", tenant="acme"))
    # When the function alone is resumed, or one of another name, then that is refused, and the gate stays
    with pytest.raises(tailrace.InvalidRequest, match="one does before function add × tenant acme"):
        await operator.set_gate(Gate("add", "", "resume"))
    with pytest.raises(tailrace.InvalidRequest, match="no gate stands before never_heard_of"):
        await operator.set_gate(Gate("never_heard_of", "", "resume"))
    assert [gate.tenant for gate in (await operator.limits()).gates] == ["acme"]
    # And what stands is resumed, once
    await operator.set_gate(Gate("add", "", "resume", tenant="acme"))
    with pytest.raises(tailrace.InvalidRequest, match="no gate stands"):
        await operator.set_gate(Gate("add", "", "resume", tenant="acme"))


async def test_quotas_are_set_and_removed(operator: GatewayClient) -> None:
    await operator.set_quota(Quota("add", 5, 10.0, 20.0, 2.0))
    assert (await operator.limits()).quotas == [Quota("add", 5, 10.0, 20.0, 2.0)]
    await operator.set_quota(Quota("add"))
    assert (await operator.limits()).quotas == []


@pytest.mark.parametrize(
    ("gate", "error", "word"),
    [
        (Gate("ad", "", "pause"), tailrace.UnknownFunction, "did you mean 'add'"),
        (Gate("add", "", "stop"), tailrace.InvalidRequest, "pause, drop, resume"),
        (Gate("add", "", "drop", "ann"), tailrace.InvalidRequest, "say who wants it and why"),
        (Gate("add", "two words", "pause"), tailrace.InvalidRequest, "collection"),
        (Gate("add", "", "pause", "w" * 501), tailrace.InvalidRequest, "who"),
    ],
)
async def test_a_wrong_gate_is_refused(operator: GatewayClient, gate: Gate, error: type[Exception], word: str) -> None:
    with pytest.raises(error, match=word):
        await operator.set_gate(gate)


@pytest.mark.parametrize(
    ("quota", "error", "word"),
    [
        (Quota("ad", 1), tailrace.UnknownFunction, "did you mean 'add'"),
        (Quota("", 1), tailrace.InvalidRequest, "function"),
        (Quota("add", rate=-1.0), tailrace.InvalidRequest, "rate is -1"),
        (Quota("add", rate=float("nan")), tailrace.InvalidRequest, "rate is nan"),
        (Quota("add", burst=5.0), tailrace.InvalidRequest, "no rate"),
    ],
)
async def test_a_wrong_quota_is_refused(
    operator: GatewayClient, quota: Quota, error: type[Exception], word: str
) -> None:
    with pytest.raises(error, match=word):
        await operator.set_quota(quota)


async def test_a_function_that_cannot_be_read_is_refused_by_name(operator: GatewayClient) -> None:
    for spec in (b"not json", b"{}", b"[]", b"\xff"):
        request = pb.RegisterFunctionsRequest(functions=[common_pb2.Function(name="odd", spec=spec)])
        with pytest.raises(tailrace.InvalidRequest, match="'odd'"):
            await operator.call("RegisterFunctions", request)


async def test_configured_quotas_are_set_at_start_and_only_once(stores: Any) -> None:
    quotas = QuotasConfig.model_validate({"functions": {"add": {"rate": 3}}}).all()
    versions = []
    for _ in range(2):
        running = stores.gateway(declared=DeclaredFiles(quotas))
        await running.start()
        versions.append((await stores.control.snapshot()).version)
        await running.stop()
    assert (await stores.control.snapshot()).quotas == [Quota("add", rate=3.0)]
    assert versions[0] == versions[1]


class Seen:
    """Collects snapshots, and wakes waiters as one comes."""

    def __init__(self) -> None:
        self.snapshots: list[Snapshot] = []
        self.outages: list[str] = []
        self._changed = asyncio.Event()

    def take(self, snapshot: Snapshot) -> None:
        self.snapshots.append(snapshot)
        self._changed.set()

    def out(self, reason: str) -> None:
        self.outages.append(reason)
        self._changed.set()

    async def until(self, condition: Any) -> None:
        async with asyncio.timeout(20):
            while not condition():
                self._changed.clear()
                await self._changed.wait()


async def test_a_watcher_gets_everything_at_once_and_then_each_change(
    gateway: GatewayServer, operator: GatewayClient
) -> None:
    seen = Seen()
    watching = asyncio.create_task(watch(gateway.address, seen.take))
    await seen.until(lambda: seen.snapshots)
    assert [spec.name for spec in seen.snapshots[0].functions] == ["add", "send_email"]
    version = await operator.set_gate(Gate("add", "", "pause"))
    await seen.until(lambda: seen.snapshots[-1].version == version)
    assert [gate.function for gate in seen.snapshots[-1].gates] == ["add"]
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)


async def test_a_watcher_outlives_its_gateway_and_is_told_once(stores: Any) -> None:
    # Given a watcher of a gateway
    first = stores.gateway()
    await first.start()
    seen = Seen()
    watching = asyncio.create_task(watch(first.address, seen.take, unreachable=seen.out))
    await seen.until(lambda: seen.snapshots)
    # When the gateway dies, it is said once, and the last version stays
    await first.stop()
    await seen.until(lambda: seen.outages)
    assert first.address in seen.outages[0] or "shutting down" in seen.outages[0]
    # And when another one listens there, with something changed meanwhile, it is heard
    version = await stores.control.put_gate(Gate("add", "", "drop"))
    second = stores.gateway(int(first.address.rpartition(":")[2]))
    await second.start()
    await seen.until(lambda: seen.snapshots[-1].version == version)
    assert len(seen.outages) == 1
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)
    await second.stop()


async def test_too_many_watchers_are_refused(stores: Any) -> None:
    running = stores.gateway(watchers=1)
    await running.start()
    seen = Seen()
    watching = asyncio.create_task(watch(running.address, seen.take))
    await seen.until(lambda: seen.snapshots)
    async with GatewayClient(running.address) as operator:
        with pytest.raises(tailrace.Overloaded, match="watchers"):
            await operator.limits()
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)
    await running.stop()


async def test_the_overview_joins_what_the_parts_tell_with_the_stores_counts(stores: Any) -> None:
    tailer = TailerOverview("orders", "log", "running", read=7, lag=-1, detail="fine")

    async def parts() -> Overview:
        return Overview(tailers=[tailer], delay={"delay.5s": 3})

    running = stores.gateway(beside=Neighbours(overview=parts))
    await running.start()
    await stores.dead_letters.add([DeadLetter("a", "orders", Kind("add"), b"{}", "fatal", "bad", 3, 1, 1.0, 2.0)])
    async with GatewayClient(running.address) as operator, tailrace.AsyncClient(running.address) as client:
        await client.submit("add", a=1)
        seen = await operator.overview()
    assert (seen.queue["new"], seen.tailers, seen.delay, seen.dead_letters) == (1, [tailer], {"delay.5s": 3}, 1)
    await running.stop()


async def test_health_and_reflection_tell_the_state(gateway: GatewayServer) -> None:
    channel = dial(gateway.address)
    stub = health_pb2_grpc.HealthStub(channel)
    for service in ("", SERVICE):
        assert (await stub.Check(health_pb2.HealthCheckRequest(service=service))).status == 1
    ask = reflection_pb2.ServerReflectionRequest(list_services="")
    call = reflection_pb2_grpc.ServerReflectionStub(channel).ServerReflectionInfo(iter([ask]))
    async for reply in call:
        assert SERVICE in {service.name for service in reply.list_services_response.service}
    await gateway.drain(1)
    for service in ("", SERVICE):
        assert (await stub.Check(health_pb2.HealthCheckRequest(service=service))).status == 2
    await channel.close()


async def test_an_error_that_nobody_foresaw_is_answered_without_a_traceback(stores: Any) -> None:
    class Broken:
        held = None

        def __getattr__(self, name: str) -> Any:
            raise RuntimeError("a bug")

    running = replace(stores, queue=Broken()).gateway()
    await running.start()
    async with GatewayClient(running.address) as operator:
        with pytest.raises(tailrace.TailraceError, match="RuntimeError: a bug") as caught:
            await operator.status(["a"])
        assert "Traceback" not in str(caught.value)
    await running.stop()


def test_the_service_has_the_name_that_health_checks_use() -> None:
    assert pb.DESCRIPTOR.services_by_name["Gateway"].full_name == SERVICE
