"""Dashboards and alert rules: every query of `deploy/` is evaluated by a real Prometheus over a run of the platform,
and none is empty."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import yaml
from servers.collector import Collector
from servers.prometheus import LocalPrometheus

import tailrace
from tailrace.assembly.platform import Platform
from tailrace.bench.process import free_ports
from tailrace.stores.log.log import Record
from tailrace.stores.remote import RemoteLog
from tailrace.wire.gateway import GatewayClient

ROOT = Path(tailrace.__file__).parent
RULES = ROOT / "deploy" / "prometheus" / "rules.yaml"
BOARDS = sorted((ROOT / "deploy" / "grafana").glob("*.json"))
FUNCTIONS = [str(Path(__file__).parent / name) for name in ("traced_functions.py", "throttled_functions.py")]
LOG = """\
name: orders
source: {kind: log, stream: orders}
function: flaky
"""
#: A comparison in an alert's expression, with what it matches by.
COMPARISON = re.compile(r"\s(?:==|!=|>=|<=|>|<)\s+(?:on \([^)]*\) )?(?:group_left \([^)]*\) )?")


@pytest.fixture
async def targets(
    tmp_path: Path, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[Platform, list[str]]]:
    """A platform of which every part answers for its numbers, and exports its traces."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.endpoint)
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "always_on")
    ports = free_ports(3)
    config = tmp_path / "configs"
    (config / "tailers").mkdir(parents=True)
    addresses = [f"127.0.0.1:{port}" for port in ports]
    for name, address in zip(("gateway", "scheduler", "worker"), addresses, strict=True):
        more = "executors: 1\n" if name == "worker" else ""
        (config / f"{name}.yaml").write_text(f"metrics_listen: {address}\n{more}")
    (config / "tailers" / "orders.yaml").write_text(LOG)
    platform = Platform(tmp_path / "data", FUNCTIONS, config, heartbeat=0.5)
    try:
        await platform.start()
        yield platform, addresses
        await platform.drain(1)
    finally:
        await platform.stop()


def expressions() -> dict[str, str]:
    """Every query of the dashboards and the rules, by where it is. Of an alert both sides of each comparison: while it
    is not due, it is rightly empty itself."""
    found = {}
    for path in BOARDS:
        for panel in json.loads(path.read_text())["panels"]:
            for target in panel["targets"]:
                where = f"{path.name}: {panel['title']}: {target['refId']}"
                found[where] = target["expr"].replace("$__rate_interval", "1m")
    for group in yaml.safe_load(RULES.read_text())["groups"]:
        for rule in group["rules"]:
            name = rule.get("record") or f"{rule['alert']} {rule['labels'].get('window', '')}"
            sides = [rule["expr"]]
            if "alert" in rule:
                either = re.split(r"\nand on \([^)]*\)\n", rule["expr"])
                sides = [side for each in either for side in COMPARISON.split(each)]
            found |= {f"{RULES.name}: {name}: {at}": side for at, side in enumerate(sides)}
    return found


@pytest.mark.timeout(240)
async def test_no_query_of_dashboards_and_rules_is_empty_over_a_run(
    targets: tuple[Platform, list[str]], prometheus: Callable[..., LocalPrometheus], tmp_path: Path
) -> None:
    platform, addresses = targets
    quick = tmp_path / "rules.yaml"
    quick.write_text(RULES.read_text().replace("interval: 30s", "interval: 1s"))
    server = await asyncio.to_thread(prometheus, addresses, [quick])

    async def work() -> None:
        """Makes work: submissions, a stream of which items fail and come back, dead letters, and a downstream that
        throttles."""
        async with (
            tailrace.AsyncClient(platform.gateway_address) as client,
            RemoteLog(platform.store_address) as log,
        ):
            while True:
                await log.append("orders", 0, [Record(b'{"fail_first": 9}'), Record(b'{"fail_first": 1}')])
                await client.submit("plain", name="Ann", priority="interactive")
                await client.submit_many([tailrace.Call("post")] * 5)
                await asyncio.sleep(0.3)

    working = asyncio.create_task(work())
    try:
        empty = expressions()
        assert len(empty) > 100
        async with asyncio.timeout(90):
            while empty:
                await asyncio.sleep(1.0)
                empty = {
                    where: text for where, text in empty.items() if not await asyncio.to_thread(server.query, text)
                }
    except TimeoutError:
        pytest.fail("nothing is found by\n" + "\n".join(f"{where}\n  {text}" for where, text in empty.items()))
    finally:
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
    # And Prometheus reads every part and every rule
    scraped = (await asyncio.to_thread(server.ask, "targets"))["activeTargets"]
    assert [each["lastError"] for each in scraped] == [""] * 3
    rules = [rule for group in (await asyncio.to_thread(server.ask, "rules"))["groups"] for rule in group["rules"]]
    assert {rule["health"] for rule in rules} == {"ok"}
    # And what is wrong in this run is alerted, what is not is not
    firing = {rule["name"] for rule in rules if rule.get("state") == "firing"}
    assert "TailracePartDown" not in firing and "TailraceNoWorker" not in firing
    async with GatewayClient(platform.gateway_address) as gateway:
        objectives = {each.objective for each in (await gateway.overview()).objectives}
    assert objectives == {"start_delay", "accepted"}


def test_the_rules_alert_on_what_burns_a_budget_and_on_nothing_else(prometheus_programs: None, tmp_path: Path) -> None:
    """promtool's own tests of the rules: series in, alerts out."""
    (tmp_path / "rules.yaml").write_text(RULES.read_text())
    (tmp_path / "test.yaml").write_text((Path(__file__).parent / "burn_rates.yaml").read_text())
    done = subprocess.run(
        ["promtool", "test", "rules", "test.yaml"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
