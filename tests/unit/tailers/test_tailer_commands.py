"""The list of tailers, as `tailrace tailer list` shows it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tailrace.model.overview import Overview, TailerOverview
from tailrace.sdk import found_gateway
from tailrace.tailers.commands.tailers import tailer_list

TAILERS = [
    TailerOverview("charges", "log", "clogged", since=5.0, detail="charge is clogged"),
    TailerOverview("words", "log", "clogged", detail='no worker runs the function "cuont"'),
    TailerOverview("queue", "queue", "running"),
]


def test_clogged_is_said_of_a_broken_function_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # Given a tailer whose function is broken, and one whose function nobody runs
    class Known:
        def overview(self) -> Overview:
            return Overview(tailers=TAILERS)

    def ask(gateway: str | None, call: Callable[[Any], Any]) -> Any:
        return call(Known())

    monkeypatch.setattr(found_gateway, "ask", ask)
    # When they are listed, Then the second one waits
    tailer_list(as_json=True)
    assert [row["state"] for row in json.loads(capsys.readouterr().out)] == ["clogged", "waiting", "running"]
