"""Prometheus for tests: a server of a test's own that scrapes given addresses and evaluates given rules.

`TAILRACE_TEST_PROMETHEUS` names another program than the one on the path.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
from servers import none_to_be_had
from servers.packages import install
from servers.program import Program
from tailrace.bench.process import free_ports

PROGRAM = "TAILRACE_TEST_PROMETHEUS"
HOW = f"install prometheus (with promtool), or set {PROGRAM} to its program"


class LocalPrometheus:
    """A Prometheus that scrapes `targets` (host:port) twice a second, with the rules of these files."""

    def __init__(self, targets: Sequence[str], rules: Sequence[Path]) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="tailrace-prometheus-"))
        [port] = free_ports(1)
        self.address = f"http://127.0.0.1:{port}"
        config = {
            "global": {"scrape_interval": "500ms", "scrape_timeout": "500ms", "evaluation_interval": "500ms"},
            "rule_files": [str(path) for path in rules],
            "scrape_configs": [{"job_name": "tailrace", "static_configs": [{"targets": list(targets)}]}],
        }
        file = self._folder / "prometheus.yaml"
        file.write_text(json.dumps(config))  # which is YAML too
        command = [
            os.environ.get(PROGRAM, "prometheus"),
            f"--config.file={file}",
            f"--storage.tsdb.path={self._folder / 'data'}",
            f"--web.listen-address=127.0.0.1:{port}",
            "--enable-feature=exemplar-storage",
        ]
        self._program = Program(command, self._answers, self._folder / "log")
        self._program.start()

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.address}/-/ready", timeout=1.0) as answer:
                return bool(answer.status == 200)
        except (OSError, urllib.error.URLError):
            return False

    def ask(self, path: str, **arguments: str) -> Any:
        """The data that the API answers with. Raises ValueError with its error."""
        url = f"{self.address}/api/v1/{path}?{urllib.parse.urlencode(arguments)}"
        try:
            with urllib.request.urlopen(url, timeout=10.0) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            raise ValueError(json.load(error).get("error", str(error))) from None

    def query(self, expression: str) -> list[Any]:
        """The value of an expression now."""
        found = self.ask("query", query=expression)
        return [found["result"]] if found["resultType"] == "scalar" else list(found["result"])

    def stop(self) -> None:
        """Ends the server and removes its data."""
        self._program.kill()
        shutil.rmtree(self._folder, ignore_errors=True)


@pytest.fixture(scope="session")
def prometheus_programs() -> None:
    """Prometheus and promtool, installed where we may."""
    if os.environ.get(PROGRAM) is None and (
        why := install("promtool", "prometheus") or install("prometheus", "prometheus")
    ):
        none_to_be_had("a real Prometheus", f"{why}: {HOW}")


@pytest.fixture
def prometheus(prometheus_programs: None) -> Iterator[Callable[..., LocalPrometheus]]:
    """Starts servers for one test, with the addresses that they scrape and their rules."""
    servers: list[LocalPrometheus] = []

    def start(targets: Sequence[str], rules: Sequence[Path] = ()) -> LocalPrometheus:
        servers.append(LocalPrometheus(targets, rules))
        return servers[-1]

    yield start
    for server in servers:
        server.stop()
