"""Answers of `tailrace result` about work that is not over."""

from __future__ import annotations

from typing import Any

import pytest
import typer

from tailrace.gateway.commands.workloads import result
from tailrace.model.status import WorkloadStatus
from tailrace.model.workload import Kind
from tailrace.sdk import client as clients


class Waiting:
    """A client of a gateway with one workload, which has not started."""

    def __init__(self, gateway: str | None) -> None:
        """Connects to nothing."""

    def __enter__(self) -> Waiting:
        return self

    def __exit__(self, *_: object) -> None:
        """Closes nothing."""

    def result(self, id: str, timeout: float | None) -> Any:
        raise TimeoutError(f"greet {id} has not ended within {timeout:g} seconds")

    def status_many(self, ids: list[str]) -> list[WorkloadStatus]:
        return [WorkloadStatus(id, "new", Kind("greet")) for id in ids]


@pytest.fixture(autouse=True)
def waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients, "Client", Waiting)


def test_of_what_is_not_over_it_says_how_to_wait(capsys: pytest.CaptureFixture[str]) -> None:
    # When somebody asks for a result without waiting for it
    with pytest.raises(typer.Exit) as ended:
        result("a1")
    # Then it is told what it is, and how to wait
    assert ended.value.exit_code == 1
    assert "greet a1 is new, so it has no result yet: --wait waits for it" in " ".join(capsys.readouterr().err.split())


def test_who_waited_is_told_for_how_long() -> None:
    with pytest.raises(TimeoutError, match="within 2 seconds"):
        result("a1", wait=True, timeout="2s")
