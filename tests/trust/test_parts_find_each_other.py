"""Parts that are started together find each other wherever they listen, in any order, and whatever proxy the
environment names."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread

import obstore
import pytest
from servers.moto_s3 import BUCKET, Moto

from tailrace.assembly.embedded import EmbeddedStores
from tailrace.assembly.free_port import free_port
from tailrace.tailers.sources.objects import ObjectsOptions, ObjectsSource

TAILRACE = [sys.executable, "-m", "tailrace.cli"]
FUNCTIONS = """
import tailrace

@tailrace.function()
async def greet(name: str) -> str:
    return "hello " + name
"""
#: Submits a call through the gateway that it is given, or finds, once there is one, and shows its result.
CALL = """
import sys, tailrace, time
client = tailrace.Client(sys.argv[1] or None)
until = time.monotonic() + 80
while True:
    try:
        print(client.submit("greet", name="Ann").result(timeout=max(0.1, until - time.monotonic())))
        break
    except tailrace.TailraceError:
        if time.monotonic() > until: raise
        time.sleep(0.1)
"""


class Fleet:
    """Processes of one folder, with a run directory of their own; `environment` is added to theirs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment: dict[str, str] = {}
        self._parts: list[subprocess.Popen[bytes]] = []

    @property
    def _environment(self) -> dict[str, str]:
        return {**os.environ, "TAILRACE_RUN_DIR": str(self.folder / "run"), **self.environment}

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        with (self.folder / f"{arguments[0]}.log").open("ab") as log:
            self._parts.append(
                subprocess.Popen([*TAILRACE, *arguments], cwd=self.folder, env=self._environment, stderr=log)
            )
        return self._parts[-1]

    def call(self, gateway: str = "") -> str:
        done = subprocess.run(
            [sys.executable, "-c", CALL, gateway],
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=90,
            check=False,
        )
        logs = "\n".join(f"{path.name}: {path.read_text()[-1500:]}" for path in self.folder.glob("*.log"))
        assert done.returncode == 0, f"{done.stderr[-600:]}\n{logs}"
        return done.stdout.strip()

    def alerts(self, *wanted: str) -> str:
        """The alerts, as soon as each of these texts is in one of them."""
        until = time.monotonic() + 60
        while True:
            command = [*TAILRACE, "alerts", "--json"]
            said = subprocess.run(command, env=self._environment, capture_output=True, text=True, check=False)
            if all(text in said.stdout for text in wanted):
                return said.stdout
            assert time.monotonic() < until, said.stdout + said.stderr

    def end(self) -> list[int]:
        for part in self._parts:
            part.send_signal(signal.SIGTERM)
        try:
            return [part.wait(30) for part in self._parts]
        finally:
            for part in self._parts:
                part.kill()


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    (tmp_path / "tasks.py").write_text(FUNCTIONS)
    (tmp_path / "configs").mkdir()
    fleet = Fleet(tmp_path)
    yield fleet
    fleet.end()


def listen(folder: Path, *files: str) -> dict[str, str]:
    """Has these files of the configuration name a free port each. Returns the addresses."""
    found = {file: f"127.0.0.1:{free_port()}" for file in files}
    for file, address in found.items():
        (folder / "configs" / f"{file}.yaml").write_text(f"listen: {address}\n")
    return found


ALL = ("gateway", "scheduler", "stores", "delay")


@pytest.mark.trust(point=16)
def test_parts_of_one_configuration_find_each_other_away_from_default_ports(fleet: Fleet) -> None:
    # Given a configuration in which every part listens somewhere else than usual
    there = listen(fleet.folder, *ALL)
    # When the parts are started at once, those first that need the others
    fleet.start("worker", "tasks.py", "--config", "configs")
    fleet.start("scheduler", "--config", "configs")
    fleet.start("node", "--config", "configs")
    # Then work goes through, and all of them end when they are told to
    assert fleet.call(there["gateway"]) == "hello Ann"
    assert fleet.end() == [0, 0, 0]


@pytest.mark.trust(point=16)
def test_parts_that_were_looked_for_too_early_are_found_later(fleet: Fleet) -> None:
    # Given a scheduler that will listen where no file says it
    listen(fleet.folder, "gateway", "stores", "delay")
    # When it is started at once with those that look for it, and for the gateway
    fleet.start("worker", "tasks.py")
    fleet.start("node", "--config", "configs")
    fleet.start("scheduler", "--listen", f"127.0.0.1:{free_port()}")
    # Then they find each other, and so does a client
    assert fleet.call() == "hello Ann"


@pytest.mark.trust(point=16)
def test_alerts_name_the_part_that_calls_another_one_in_vain_and_where_its_address_comes_from(fleet: Fleet) -> None:
    # Given a worker that was told another scheduler than the one that runs, and work
    there, nowhere = listen(fleet.folder, *ALL), f"127.0.0.1:{free_port()}"
    fleet.environment["TAILRACE_GATEWAY"] = there["gateway"]
    fleet.start("node", "--config", "configs")
    scheduler = fleet.start("scheduler", "--config", "configs")
    fleet.start("worker", "tasks.py", "--config", "configs", "--scheduler", nowhere)
    with ThreadPoolExecutor() as threads:
        called = threads.submit(fleet.call, there["gateway"])
        # When somebody looks, then there stands who calls whom in vain, and why there
        told = "called because it is `listen` in configs/scheduler.yaml"
        calls = f"calling the scheduler {nowhere} fails, and tries again: {nowhere} (called because --scheduler names"
        fleet.alerts(calls, f"no worker runs greet at the scheduler {there['scheduler']} ({told})")
        # And once a worker calls the right one, the work is done
        fleet.start("worker", "tasks.py", "--config", "configs")
        assert called.result() == "hello Ann"
    # And when the scheduler ends, then the tailers say so
    scheduler.terminate()
    fleet.alerts(f"{there['scheduler']} ({told}) does not answer")


class Asked:
    """A server of HTTP on this machine that notes what it is asked, and answers with a status alone."""

    def __init__(self, status: str) -> None:
        self.lines: list[str] = []
        self.some = Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def handle_one_request(self) -> None:
                outer.lines.append(self.rfile.readline(1000).decode("latin-1").strip())
                outer.some.set()
                self.wfile.write(f"HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n".encode())
                self.close_connection = True

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.address = f"http://127.0.0.1:{self._server.server_address[1]}"
        Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def asked() -> Iterator[Callable[[str], Asked]]:
    servers: list[Asked] = []

    def one(status: str) -> Asked:
        servers.append(Asked(status))
        return servers[-1]

    yield one
    for server in servers:
        server.close()


def through(proxy: Asked) -> dict[str, str]:
    """An environment that names a proxy, in every way in which it is done."""
    names = ("http_proxy", "https_proxy", "all_proxy", "grpc_proxy")
    named = {name: proxy.address for each in names for name in (each, each.upper())}
    return {**named, "no_proxy": "", "NO_PROXY": ""}


@pytest.mark.trust(point=16)
def test_no_call_on_this_machine_goes_to_a_proxy(fleet: Fleet, asked: Callable[[str], Asked]) -> None:
    # Given an environment that names a proxy, and a collector on this machine
    proxy, collector = asked("502 Bad Gateway"), asked("200 OK")
    fleet.environment = {**through(proxy), "OTEL_EXPORTER_OTLP_ENDPOINT": collector.address}
    fleet.environment |= {"OTEL_METRIC_EXPORT_INTERVAL": "500"}
    there = listen(fleet.folder, *ALL)
    # When the platform runs
    fleet.start("up", "tasks.py", "--config", "configs")
    # Then work goes through, its numbers are told, and nobody asked the proxy
    assert fleet.call(there["gateway"]) == "hello Ann"
    assert collector.some.wait(30)
    assert fleet.end() == [0] and proxy.lines == []


@pytest.mark.trust(point=16)
async def test_an_object_store_on_this_machine_is_not_asked_through_a_proxy(
    asked: Callable[[str], Asked], moto: Moto, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given objects in a store on this machine, of which one cannot be named, and an environment that names a proxy
    obstore.put(moto.client(), "a", b"content")
    assert moto.ask("PUT", f"/{BUCKET}/in/b//c") == 200
    proxy = asked("502 Bad Gateway")
    for name, value in through(proxy).items():
        monkeypatch.setenv(name, value)
    # When they are read
    async with EmbeddedStores(tmp_path / "data") as stores:
        options = ObjectsOptions.model_validate({**moto.keys, "poll": 0.1, "timeout": 5})
        source = ObjectsSource(options, stores.inventory, stores.segments, "o")
        await source.open({})
        found: list[bytes] = []
        async with asyncio.timeout(30):
            while len(found) < 2:
                found += [each for batch in await source.read(10, 1 << 20, 1) for each in batch.payloads]
        await source.close()
    # Then they are there, and nobody asked the proxy
    assert b"content" in found and proxy.lines == []
