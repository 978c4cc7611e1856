"""Files for installing: image, containers, systemd units and the chart name only things that exist, and are bounded and
safe."""

from __future__ import annotations

import configparser
import importlib
import json
import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

import tailrace
from tailrace.assembly.files import read_all
from tailrace.assembly.running import GRACE
from tailrace.assembly.settings import FILES, ConfigDirectory
from tailrace.cli import app
from tailrace.runtime.config import WorkerConfig
from tailrace.sdk.function import Function

ROOT = Path(tailrace.__file__).parent
DEPLOY = ROOT / "deploy"
CHART = DEPLOY / "helm" / "tailrace"
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
PARTS = {name: each for name, each in COMPOSE["services"].items() if name not in ("postgres", "fleet")}


def parsed(words: Sequence[str]) -> Any:
    """Parses a line of words as the command line does, without doing anything. Raises the error of a mistake in it."""
    command: Any = typer.main.get_command(app)
    rest = list(words)
    while hasattr(command, "resolve_command"):
        context = command.make_context("tailrace", [], resilient_parsing=True)
        context.resilient_parsing = False
        _, command, rest = command.resolve_command(context, rest)
    return command.make_context(words[0], rest)


def test_a_command_line_with_a_mistake_is_not_taken() -> None:
    for words in ("nod --config x", "node --configs x", "worker", "health --timeout soon"):
        with pytest.raises(Exception, match=r"No such|Missing|not a valid"):
            parsed(words.split())


# -- the image ----------------------------------------------------------------------------------------------------


def dockerfile() -> list[str]:
    text = re.sub(r"\\\n\s*", " ", (ROOT / "Dockerfile").read_text())
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def test_the_image_is_small_and_nobody_in_it_is_root() -> None:
    lines = dockerfile()
    bases = [line.split()[1] for line in lines if line.startswith("FROM")]
    assert len(bases) == 2 and all(re.fullmatch(r"python:3\.\d+-slim-\w+", base) for base in bases)
    last = lines[max(at for at, line in enumerate(lines) if line.startswith("FROM")) :]
    assert next(line for line in last if line.startswith("USER")) == "USER 10001:10001"
    assert not any(word in line for line in last for word in ("apt-get", "pip install", "ADD "))
    assert all(json.loads(line.partition(" ")[2]) for line in last if line.startswith(("ENTRYPOINT", "CMD")))
    [check] = [line for line in last if line.startswith("HEALTHCHECK")]
    parsed(json.loads(check.partition(" CMD ")[2])[1:])
    assert any("--require-hashes -r requirements-image.lock" in line for line in lines)


def test_the_image_is_made_of_the_package_and_nothing_else() -> None:
    packages = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    folders = {name.split(".")[1] for name in packages if "." in name}
    let_in = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    assert folders <= let_in
    assert all((ROOT / name).exists() for name in let_in)
    assert not let_in & {"tests", "docs", ".git", "deploy"}


def pins(lock: str) -> dict[str, str]:
    """Pins of a lock by distribution: its version and its hashes."""
    blocks = re.split(r"\n(?=\S)", re.sub(r" \\\n\s+", " ", (ROOT / lock).read_text()))
    return {block.split("==")[0]: block.strip() for block in blocks if "==" in block}


def test_the_image_has_the_versions_that_are_tested() -> None:
    whole, image = pins("requirements.lock"), pins("requirements-image.lock")
    assert len(image) > 40 and {name: whole.get(name) for name in image} == image
    for tool in ("pytest", "ruff", "mypy", "moto", "setuptools"):
        assert tool not in image


# -- containers ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PARTS)
def test_each_container_runs_a_command_that_there_is(name: str) -> None:
    part = PARTS[name]
    parsed(part["command"])
    kind, *test = part["healthcheck"]["test"]
    assert (kind, test[0]) == ("CMD", "tailrace")
    parsed(test[1:])


@pytest.mark.parametrize("name", PARTS)
def test_each_container_is_bounded_and_may_do_little(name: str) -> None:
    part = PARTS[name]
    assert part["read_only"] and part["cap_drop"] == ["ALL"] and part["security_opt"] == ["no-new-privileges:true"]
    assert part["mem_limit"] and part["pids_limit"] and part["stop_grace_period"]
    assert all(port.startswith("127.0.0.1:") for port in part.get("ports", ()))
    assert part["environment"]["TAILRACE_TLS"].startswith("/fleet/")


def test_no_password_stands_in_a_file() -> None:
    text = (DEPLOY / "compose.yaml").read_text()
    assert text.count("${DATABASE_PASSWORD:?") == 2 and "PASSWORD: tailrace" not in text
    made, renewed = COMPOSE["services"]["fleet"]["entrypoint"][2].split(" && ")
    of = parsed(made.split()[1:]).params
    assert (of["hosts"], of["if_needed"]) == (("node", "scheduler"), True)
    assert 30 < parsed(renewed.split()[1:]).params["within"] < of["days"]


def test_the_containers_configuration_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_PASSWORD", "secret")
    found = read_all(ConfigDirectory(DEPLOY / "compose"))
    assert (found["gateway.yaml"].listen, found["scheduler.yaml"].listen) == ("node:8786", "scheduler:8788")
    assert found["stores.yaml"].queue["engine"] == "postgres"
    namespace: dict[str, Any] = {"__name__": "tasks"}
    exec((DEPLOY / "compose" / "tasks.py").read_text(), namespace)
    assert isinstance(namespace["greet"], Function)


# -- systemd ------------------------------------------------------------------------------------------------------


def unit(path: Path) -> configparser.SectionProxy:
    reader = configparser.ConfigParser(strict=False, interpolation=None)
    reader.optionxform = str  # type: ignore[assignment,method-assign]
    reader.read_string(path.read_text())
    return reader["Service"]


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.stem)
def test_a_unit_runs_a_command_that_there_is_and_is_hardened(path: Path) -> None:
    service = unit(path)
    program, *words = service["ExecStart"].split()
    assert program == "/opt/tailrace/bin/tailrace"
    parsed(words)
    for key, value in {
        "NoNewPrivileges": "yes",
        "ProtectSystem": "strict",
        "ProtectHome": "yes",
        "PrivateTmp": "yes",
        "CapabilityBoundingSet": "",
        "Restart": "on-failure",
        "User": "tailrace",
    }.items():
        assert service[key] == value
    assert int(service["TimeoutStopSec"]) > WorkerConfig().grace and service["MemoryMax"]
    # And programs that functions started are not ended before what waits for them
    assert "worker" not in path.name or service["KillMode"] == "mixed"


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.stem)
def test_systemd_takes_the_unit(path: Path, tmp_path: Path) -> None:
    """The check needs systemd; elsewhere its files are no use."""
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        return
    copy = tmp_path / path.name
    copy.write_text(path.read_text().replace("/opt/tailrace/bin/tailrace", "/bin/true"))
    done = subprocess.run([analyze, "verify", str(copy)], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")


# -- the chart ----------------------------------------------------------------------------------------------------


def values() -> Any:
    return yaml.safe_load((CHART / "values.yaml").read_text())


def templates() -> Iterator[tuple[str, str]]:
    for path in sorted((CHART / "templates").glob("*.yaml")):
        yield path.name, path.read_text()


def test_the_charts_values_fit_its_schema_and_mistakes_do_not() -> None:
    jsonschema: Any = importlib.import_module("jsonschema")
    schema = json.loads((CHART / "values.schema.json").read_text())
    check = jsonschema.Draft202012Validator(schema)
    assert not list(check.iter_errors(values()))
    for wrong in (
        {"worker": {}},
        {"fleet": "A Shop"},
        {"workers": {}},
        {"workers": {"gpu": {"modules": []}}},
        {"database": {"url": "postgresql://tailrace:secret@db/t"}},
        {"drain": 0},
        {"node": {"secrets": ["kafka", ""]}},
        {"env": {"TAILRACE_TLS": "/elsewhere"}},
        {"scheduler": {"env": {"LIMIT": 1}}},
        {"files": {"gateway.yaml": "listen: here:1"}},
        {"tokens": {"port": 8786}},
        {"metrics": {"port": 9464, "scrapers": [{}]}},
    ):
        assert list(check.iter_errors(values() | wrong)), wrong


def test_the_chart_uses_values_that_there_are() -> None:
    known = values()
    for name, text in templates():
        for path in re.findall(r"\.Values\.([a-zA-Z.]+)", text):
            at: Any = known
            for word in path.split("."):
                assert isinstance(at, dict) and word in at, f"{name}: there is no value {path}"
                at = at[word]


def test_the_chart_takes_each_file_that_it_does_not_make_itself() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())
    taken = schema["properties"]["files"]["propertyNames"]["enum"]
    # Of the others it makes three, and programs have the fourth
    assert {*FILES} - {*taken} == {"gateway.yaml", "scheduler.yaml", "worker.yaml", "client.yaml"}
    assert {*taken} < {*FILES}


def test_every_pod_of_the_chart_is_safe_bounded_and_asked() -> None:
    pods = [text for _, text in templates() if "containers:" in text]
    assert len(pods) == 3
    for text in pods:
        for part in ("podSecurity", "containerSecurity", "environment", "probes", "volumes", "mounts"):
            assert f'include "tailrace.{part}"' in text
        assert "terminationGracePeriodSeconds" in text and "resources:" in text
        assert "password" not in text or "secretKeyRef" in text


def test_a_pod_is_not_killed_while_its_part_drains() -> None:
    # Given the pods of the chart, of which `drain` is the grace of workers alone
    for name, text in templates():
        _, found, after = text.partition("terminationGracePeriodSeconds: ")
        if found and name == "worker.yaml":
            assert after.startswith("{{ add $.Values.drain 15 }}")
        elif found:  # Then the other ones have more than their parts take, whatever `drain` is
            assert int(after.split()[0]) >= GRACE + 15


def test_the_chart_is_of_this_version() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["appVersion"] == tailrace.__version__
