"""Addresses of parts that the command line is given: one without a port is refused before anything starts."""

from __future__ import annotations

import sys

import pytest

from tailrace import cli
from tailrace.assembly import foreground


def main(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["tailrace", *arguments])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return int(ended.value.code or 0)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("worker", "tasks.py", "--scheduler", "node1"), "--scheduler is 'node1': expected host:port"),
        (("worker", "tasks.py", "--scheduler", "a:1", "--scheduler", "b"), "--scheduler is 'b': expected host:port"),
        (("tailer", "run", "a.yaml", "--scheduler", "node1"), "--scheduler is 'node1': expected host:port"),
        (("tailer", "run", "a.yaml", "--store", "node1"), "--store (TAILRACE_STORE) is 'node1': expected host:port"),
        (("delay", "--store", "node1:x"), "--store (TAILRACE_STORE) is 'node1:x': expected host:port"),
        (("tailer", "run", "a.yaml", "--delay", "node1"), "--delay (TAILRACE_DELAY) is 'node1': expected host:port"),
        (("health", "node1"), "'node1': expected host:port, or http://host:port"),
    ],
)
def test_an_address_without_a_port_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], says: str
) -> None:
    # Given a part that would wait for ever for whoever is to answer there
    monkeypatch.setattr(foreground, "run_part", lambda settings: pytest.fail(f"it was started: {settings}"))
    # When it is to start, Then it is told where the address was given, and what one is
    assert main(monkeypatch, *arguments) == 2
    assert says in capsys.readouterr().err


def test_one_of_the_environment_is_refused_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TAILRACE_STORE", "node1")
    assert main(monkeypatch, "gateway") == 2
    assert "TAILRACE_STORE" in capsys.readouterr().err
