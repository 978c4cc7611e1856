"""Parts on two hosts are one platform over TLS: as network namespaces with addresses of their own where this machine
can have some, and as two addresses of it everywhere."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
from scenes import commands

from tailrace.assembly.free_port import free_port

pytestmark = pytest.mark.timeout(300)  # some ten processes are started one after the other

TAILRACE = [sys.executable, "-m", "tailrace.cli"]
FUNCTIONS = """
import asyncio
import os
import tailrace

@tailrace.function()
async def where() -> str:
    return os.environ["HOST"]

@tailrace.function(timeout="60s")
async def lasting(n: int) -> str:
    with open("starts", "a") as starts:
        starts.write(f"{n}\\n")
    await asyncio.sleep(6)
    return "done"
"""
#: Seconds that parts get to find each other, on a machine that does much else.
PATIENCE = 60.0


class Host(NamedTuple):
    """A host: its address for others, how one listens there, and what runs a program on it."""

    name: str
    address: str
    listen: str
    within: tuple[str, ...]


def two_addresses() -> Iterator[tuple[Host, Host]]:
    """Two addresses of one machine, between which TLS is spoken because the addresses say so."""
    yield Host("one", "127.0.0.2", "tls:127.0.0.2", ()), Host("two", "127.0.0.3", "tls:127.0.0.3", ())


def run(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True)


def two_namespaces() -> Iterator[tuple[Host, Host]]:
    """Makes two networks with a wire between them."""
    tag = uuid.uuid4().hex[:6]
    names = [f"tr{tag}{end}" for end in "ab"]
    try:
        try:
            for name in names:
                run("ip", "netns", "add", name)
            run("ip", "link", "add", names[0], "netns", names[0], "type", "veth", "peer", names[1], "netns", names[1])
        except (OSError, subprocess.CalledProcessError):
            pytest.skip("this machine gives no network namespaces")
        hosts = []
        for number, name in enumerate(names, 1):
            address = f"10.77.0.{number}"
            run("ip", "-n", name, "addr", "add", f"{address}/24", "dev", name)
            for device in ("lo", name):
                run("ip", "-n", name, "link", "set", device, "up")
            hosts.append(Host(name, address, address, ("ip", "netns", "exec", name)))
        yield hosts[0], hosts[1]
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)


#: In `make test` wires between namespaces are in test_host_faults.py.
NAMESPACES = pytest.param(two_namespaces, id="two namespaces", marks=pytest.mark.long(minutes=0.16))


@pytest.fixture(params=[pytest.param(two_addresses, id="two addresses"), NAMESPACES])
def hosts(request: pytest.FixtureRequest) -> Iterator[tuple[Host, Host]]:
    yield from request.param()


class Running:
    """A process of a host; `said` waits until its standard error has a text."""

    def __init__(self, host: Host, folder: Path, certificates: Path | None, arguments: tuple[str, ...]) -> None:
        self.text = ""
        self._more = threading.Condition()
        self._over = False
        self.process = subprocess.Popen(
            [*host.within, *TAILRACE, *arguments],
            cwd=folder,
            env=environment(host, folder, certificates),
            stderr=subprocess.PIPE,
            text=True,
        )
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        with self.process.stderr as lines:
            for line in lines:
                with self._more:
                    self.text += line
                    self._more.notify_all()
        with self._more:
            self._over = True
            self._more.notify_all()

    def said(self, text: str) -> None:
        with self._more:
            self._more.wait_for(lambda: text in self.text or self._over, timeout=PATIENCE)
        assert text in self.text, f"never said {text!r}: {self.text}"

    def end(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._reader.join()


def environment(host: Host, folder: Path, certificates: Path | None) -> dict[str, str]:
    (folder / f"run-{host.name}").mkdir(mode=0o700, exist_ok=True)
    found = {
        **os.environ,
        "TAILRACE_LOG": "text",
        "HOST": host.name,
        "TAILRACE_RUN_DIR": str(folder / f"run-{host.name}"),
    }
    found.pop("TAILRACE_TLS", None)
    return found if certificates is None else found | {"TAILRACE_TLS": str(certificates)}


Start = Callable[..., Running]


class Site(NamedTuple):
    """Two hosts with a fleet: all but the workers is on the first one."""

    folder: Path
    one: Host
    two: Host
    start: Start
    gateway: str
    scheduler: str
    #: The processes that were started, in order.
    parts: Sequence[Running] = ()

    def tell(
        self, host: Host, role: str | None, *words: str, more: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Runs a command to its end as a role of the fleet; None: without certificates."""
        certificates = None if role is None else self.folder / "fleet" / role
        told = environment(host, self.folder, certificates) | (more or {})
        return commands.tailrace(*words, env=told, cwd=self.folder, timeout=PATIENCE, within=host.within)

    def result(self, host: Host, id: str) -> subprocess.CompletedProcess[str]:
        """Waits for the result of a workload."""
        return self.tell(host, "client", "result", id, "--wait", "--timeout", "50s", "--gateway", self.gateway)


@pytest.fixture
def site(hosts: tuple[Host, Host], tmp_path: Path) -> Iterator[Site]:
    one, two = hosts
    (tmp_path / "tasks.py").write_text(FUNCTIONS)
    (tmp_path / "queue.yaml").write_text("name: queue\nsource: {kind: queue}\nresults: true\n")
    running: list[Running] = []

    def start(host: Host, role: str, *words: str, fleet: str = "fleet") -> Running:
        running.append(Running(host, tmp_path, tmp_path / fleet / role, words))
        return running[-1]

    ports = (8786, 8788, 8790, 8789)
    gateway, scheduler, store, delay = (f"{one.listen}:{port_of(one, each)}" for each in ports)
    site = Site(tmp_path, one, two, start, gateway, scheduler, running)
    made = site.tell(one, None, "auth", "init", str(tmp_path / "fleet"), "--host", one.address)
    assert made.returncode == 0, made.stderr
    try:
        start(one, "node", "store", "serve", "--data", "data", "--listen", store)
        start(one, "gateway", "gateway", "--store", store, "--listen", gateway)
        start(one, "node", "delay", "--store", store, "--listen", delay)
        start(one, "scheduler", "scheduler", "--gateway", gateway, "--listen", scheduler)
        start(
            one, "tailer", "tailer", "run", "queue.yaml", "--store", store, "--delay", delay, "--scheduler", scheduler
        )
        for part in running:
            part.said("ready")
        yield site
    finally:
        for part in reversed(running):
            part.end()


def test_workers_of_another_host_run_what_clients_of_a_third_submit(site: Site) -> None:
    worker = site.start(
        site.two, "worker", "worker", "tasks.py", "--gateway", site.gateway, "--scheduler", site.scheduler
    )
    worker.said("ready")
    # When a client submits, from any host
    submitted = site.tell(site.two, "client", "submit", "where", "--gateway", site.gateway, "--json")
    assert submitted.returncode == 0, submitted.stderr
    # Then it runs over there
    result = site.result(site.one, json.loads(submitted.stdout)[0]["id"])
    assert json.loads(result.stdout) == site.two.name, result.stderr
    # And a client is no operator, nor is anybody who has no certificate
    refused = site.tell(site.two, "client", "gate", "pause", "where", "--gateway", site.gateway)
    assert refused.returncode == 2 and "only operator may" in refused.stderr
    strange = site.tell(site.two, None, "submit", "where", "--gateway", site.gateway)
    assert strange.returncode != 0 and "TAILRACE_TLS" in strange.stderr
    assert site.tell(site.two, "operator", "gate", "pause", "where", "--gateway", site.gateway).returncode == 0


@pytest.mark.parametrize(
    "hosts", [NAMESPACES], indirect=True
)  # of a worker: tests/integration/worker/test_worker_sessions.py
def test_a_wire_that_is_cut_for_a_moment_restarts_nothing(site: Site) -> None:
    site.start(site.two, "worker", "worker", "tasks.py", "--gateway", site.gateway, "--scheduler", site.scheduler).said(
        "ready"
    )
    # Given items that run on the other host
    ids = []
    for number in range(5):
        words = ("submit", "lasting", f"n={number}", "--gateway", site.gateway, "--json")
        ids.append(json.loads(site.tell(site.one, "client", *words).stdout)[0]["id"])
    starts = site.folder / "starts"
    deadline = time.monotonic() + PATIENCE
    while not starts.exists() or len(starts.read_text().splitlines()) < len(ids):
        assert time.monotonic() < deadline, "not all of them were started"
        time.sleep(0.05)
    # When the wire between the hosts is cut for three seconds
    run("ip", "-n", site.two.name, "link", "set", site.two.name, "down")
    time.sleep(3)
    run("ip", "-n", site.two.name, "link", "set", site.two.name, "up")
    # Then each ends as it began, once
    for id in ids:
        result = site.result(site.one, id)
        assert result.stdout == '"done"\n', result.stderr
    assert sorted(starts.read_text().split()) == [str(number) for number in range(len(ids))]


def test_who_is_no_worker_of_the_fleet_gets_no_work_and_is_told_why(site: Site) -> None:
    made = site.tell(site.two, None, "auth", "init", str(site.folder / "other"), "--fleet", "other")
    assert made.returncode == 0
    words = ("worker", "tasks.py", "--gateway", site.gateway, "--scheduler", site.scheduler)
    site.start(site.two, "tailer", *words).said("may not call Gateway/RegisterFunctions: only node and worker may")
    site.start(site.two, "worker", *words, fleet="other").said("its certificate is of another fleet")
    inspected = site.tell(site.one, "operator", "inspect", "--scheduler", site.scheduler, "--json")
    assert json.loads(inspected.stdout)["workers"] == []


def test_a_platform_of_one_machine_gets_workers_of_another_one(hosts: tuple[Host, Host], tmp_path: Path) -> None:
    """The steps are those of the guide docs/guides/hosts.md."""
    one, two = hosts
    (tmp_path / "tasks.py").write_text(FUNCTIONS)
    site = Site(tmp_path, one, two, lambda: None, *(f"{one.listen}:{port_of(one, each)}" for each in (8786, 8788)))  # type: ignore[arg-type, return-value]
    tokens = f"{one.listen}:{port_of(one, 8787)}"
    assert site.tell(one, None, "auth", "init", "fleet", "--host", one.address).returncode == 0
    # Given a platform whose gateway and scheduler listen for others
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs" / "access.yaml").write_text(f"tls: {tmp_path}/fleet/node\n")
    (tmp_path / "configs" / "gateway.yaml").write_text(f"listen: {site.gateway}\ntoken_listen: {tokens}\n")
    (tmp_path / "configs" / "scheduler.yaml").write_text(f"listen: {site.scheduler}\n")
    running = [Running(one, tmp_path, None, ("up", "--config", "configs", "--data", "data"))]
    try:
        running[0].said("tailrace  ready")
        # When a worker of another host attaches
        words = ("worker", "tasks.py", "--gateway", site.gateway, "--scheduler", site.scheduler)
        running.append(Running(two, tmp_path, tmp_path / "fleet" / "worker", words))
        running[1].said("ready")
        # Then it runs what is submitted, here or there
        for host in (one, two):
            submitted = site.tell(host, "client", "submit", "where", "--gateway", site.gateway, "--json")
            assert submitted.returncode == 0, submitted.stderr
            id = json.loads(submitted.stdout)[0]["id"]
            result = site.result(host, id)
            assert json.loads(result.stdout) == two.name, result.stderr
        # And with a token of the operator's making, until that is revoked
        may = ("--may", "submit:where", "--gateway", site.gateway, "--json")
        made = site.tell(one, "operator", "auth", "token", "create", "ci", *may)
        assert made.returncode == 0, made.stderr
        token = {"TAILRACE_TOKEN": json.loads(made.stdout)["token"]}
        (tmp_path / "fleet" / "bare").mkdir()
        (tmp_path / "fleet" / "bare" / "ca.crt").write_bytes((tmp_path / "fleet" / "ca.crt").read_bytes())
        words = ("submit", "where", "--gateway", tokens)
        assert site.tell(two, "bare", *words, more=token).returncode == 0
        assert "needs the right" in site.tell(two, "bare", "gate", "list", "--gateway", tokens, more=token).stderr
        assert site.tell(one, "operator", "auth", "token", "revoke", "ci", "--gateway", site.gateway).returncode == 0
        revoked = site.tell(two, "bare", *words, more=token)
        assert revoked.returncode == 2 and "the token is not known here" in revoked.stderr
        # And nobody reads it, nor any key, in what was said
        secrets = [token["TAILRACE_TOKEN"], (tmp_path / "fleet" / "node" / "tls.key").read_text().splitlines()[1]]
        said = [part.text for part in running] + [revoked.stderr, revoked.stdout]
        assert not any(secret in text for secret in secrets for text in said)
        # And whoever knows the machine's secret finds the platform without being told where
        found = site.tell(one, "operator", "inspect", "--json")
        assert [each["connected"] for each in json.loads(found.stdout)["workers"]] == [True], found.stderr
    finally:
        for part in reversed(running):
            part.end()


def port_of(host: Host, number: int) -> int:
    return number if host.within else free_port()
