"""Two versions side by side: parts of the last commit of the step before work with parts of this one, either way round,
over stores that the older one made. The wire and the stores are read by both.

On PostgreSQL the schema is the store server's alone: parts of the step before work over a new one. That nodes of two
versions have one schema is tested in one process (tests/integration/test_postgres_nodes.py).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import tailrace
from tailrace.bench.process import free_ports
from tailrace.model.errors import UnknownFunction

ROOT = Path(tailrace.__file__).parent
#: The last commit before parts had certificates, tokens, labels and acts.
BEFORE = "364dc0ba50d3c647555199e260dd6e31c9a5699e"
TASKS = ROOT / "deploy" / "compose" / "tasks.py"
RUN = "import sys; from tailrace.cli import main; sys.exit(main())"


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which `tailrace` is the older one."""
    return taken_out(tmp_path_factory.mktemp("before"), BEFORE)


def taken_out(folder: Path, commit: str) -> Path:
    """The folder, with the tree of a commit in it."""
    archive = subprocess.run(["git", "archive", commit], cwd=ROOT, capture_output=True, check=False)
    if archive.returncode != 0:
        pytest.skip(f"the clone has no commit {commit[:8]}")
    (folder / "tailrace").mkdir()
    subprocess.run(["tar", "-x", "-C", str(folder / "tailrace")], input=archive.stdout, check=True)
    return folder


class Machine:
    """A machine on which parts of two versions run."""

    def __init__(self, folder: Path, before: Path, **stores: object) -> None:
        self.folder = folder
        folder.mkdir(exist_ok=True)
        ports = free_ports(4)
        self.at = {name: f"127.0.0.1:{port}" for name, port in zip(("gateway", "scheduler", "delay", "store"), ports)}  # noqa: B905
        config = folder / "config"
        config.mkdir()
        for name in ("gateway", "scheduler", "delay"):
            (config / f"{name}.yaml").write_text(f"listen: {self.at[name]}\n")
        (config / "stores.yaml").write_text(json.dumps({"listen": self.at["store"], **stores}))
        (config / "worker.yaml").write_text("executors: 1\n")
        self.common = ("--config", str(config))
        self.tailer = folder / "queue.yaml"
        self.tailer.write_text("name: queue\nsource: {kind: queue}\nresults: true\n")
        self._environments = {
            "new": {**os.environ, "TAILRACE_RUN_DIR": str(folder / "run")},
            "old": {**os.environ, "TAILRACE_RUN_DIR": str(folder / "run"), "PYTHONPATH": str(before)},
        }

    def words(self, part: str) -> list[str]:
        gateway, scheduler, store = self.at["gateway"], self.at["scheduler"], self.at["store"]
        return {
            "store": ["store", "serve", *self.common, "--data", str(self.folder / "data")],
            "gateway": ["gateway", *self.common, "--store", store, "--data", str(self.folder / "spool")],
            "delay": ["delay", *self.common, "--store", store],
            "scheduler": ["scheduler", *self.common, "--gateway", gateway],
            "worker": ["worker", str(TASKS), *self.common, "--gateway", gateway, "--scheduler", scheduler],
            "tailer": [
                *("tailer", "run", str(self.tailer), *self.common, "--scheduler", scheduler, "--store", store),
                *("--delay", self.at["delay"]),
            ],
        }[part]

    @contextmanager
    def running(self, **versions: str) -> Iterator[None]:
        """Runs these parts, each of its version."""
        made: list[subprocess.Popen[bytes]] = []
        try:
            for part, version in versions.items():
                command = [sys.executable, "-c", RUN, *self.words(part)]
                with (self.folder / "log").open("a") as log:
                    made.append(subprocess.Popen(command, cwd="/", env=self._environments[version], stderr=log))
            yield
        finally:
            for process in reversed(made):  # the workers first, the stores last
                process.terminate()
                process.wait(60)

    def client(self) -> tailrace.Client:
        return tailrace.Client(self.at["gateway"], timeout=60)


def greeted(client: tailrace.Client, name: str) -> str:
    """Calls the function, once a worker has registered it, and returns its result."""
    for _ in range(300):
        try:
            return str(client.submit("greet", name=name).result(timeout=60))
        except UnknownFunction:
            time.sleep(0.1)
    raise AssertionError("no worker registers the function")


def test_the_older_one_is_the_older_one(before: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(before)}
    look = "import tailrace; print(tailrace.__file__)"
    told = subprocess.run([sys.executable, "-c", look], cwd="/", env=environment, capture_output=True, text=True)  # noqa: PLW1510
    assert told.stdout.startswith(str(before))


@pytest.mark.long(minutes=1.3)
def test_parts_are_replaced_one_by_one_and_work_goes_on(tmp_path: Path, before: Path) -> None:
    # Given a platform of the version before, with work that is done and work that waits
    parts = ("store", "gateway", "delay", "scheduler", "tailer", "worker")
    machine = Machine(tmp_path, before)
    os.environ["TAILRACE_RUN_DIR"] = str(tmp_path / "run")
    try:
        with machine.running(**dict.fromkeys(parts, "old")), machine.client() as client:
            assert greeted(client, "Ann") == "Hello, Ann!"
            waits = client.submit("greet", name="Bob", delay=3600).id
        # When one part after another is of this version, then what is submitted is run, and what waited waits
        for upgraded in range(1, len(parts) + 1):
            versions = {part: "new" if at < upgraded else "old" for at, part in enumerate(parts)}
            with machine.running(**versions), machine.client() as client:
                assert greeted(client, f"{upgraded}") == f"Hello, {upgraded}!", versions
                assert client.status(waits).state == "new"
        # And likewise when the worker and the scheduler are the first
        versions = {part: "new" if part in ("worker", "scheduler") else "old" for part in parts[1:]}
        with machine.running(store="new", **versions), machine.client() as client:
            assert greeted(client, "last") == "Hello, last!"
    finally:
        del os.environ["TAILRACE_RUN_DIR"]


@pytest.mark.long(minutes=0.7)
def test_parts_of_the_version_before_work_over_a_new_store_server_on_postgresql(
    tmp_path: Path, before: Path, postgres_server: str, postgres_schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a store server of this version, whose schema no part of the version before knows
    monkeypatch.setenv("TAILRACE_RUN_DIR", str(tmp_path / "run"))
    there = {"engine": "postgres", "url": postgres_server, "schema": postgres_schema}
    machine = Machine(tmp_path, before, durability="relaxed", queue=there, state=there)
    # When all others are of that version, then work goes on; and likewise when the ends are replaced, or the middle
    for new in ((), ("worker", "scheduler"), ("gateway", "tailer", "delay")):
        parts = ("gateway", "delay", "scheduler", "tailer", "worker")
        versions = {part: "new" if part in new else "old" for part in parts}
        with machine.running(store="new", **versions), machine.client() as client:
            assert greeted(client, "Ann") == "Hello, Ann!", versions
