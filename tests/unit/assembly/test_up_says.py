"""Words of `tailrace up` once it is ready."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tailrace.assembly import foreground
from tailrace.foundation import telemetry


class Started:
    """A platform that is said to run."""

    gateway_address, scheduler_address = "127.0.0.1:1", "127.0.0.1:2"

    def __init__(self, *_: Any, **__: Any) -> None:
        """Starts nothing."""


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(part: Any, started: Callable[[], None], *_: Any) -> int:
        started()
        return 0

    monkeypatch.setenv(telemetry.FORMAT_VARIABLE, "text")
    monkeypatch.setattr(foreground, "Platform", Started)
    monkeypatch.setattr(foreground, "_run", run)


def test_it_names_the_tailers_of_its_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # Given two files of tailers, and one that is none by its name
    (tmp_path / "tailers").mkdir()
    for name in ("words.yaml", "orders.yml", "lost.json"):
        text = f"name: {Path(name).stem}\nsource: {{kind: log, stream: s}}\nfunction: f\n"
        (tmp_path / "tailers" / name).write_text(text)
    # When it is ready, then it says which it has
    assert foreground.run_up((), tmp_path, tmp_path / "data", False, False) == 0
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].split() == ["tailrace", "tailers", "orders,", "words"]
    assert lines[1].split()[:2] == ["tailrace", "ready"]


def test_it_says_when_there_are_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    foreground.run_up((), tmp_path, tmp_path / "data", False, False)
    assert f"no file in {tmp_path / 'tailers'}/: the queue alone is read" in capsys.readouterr().err
