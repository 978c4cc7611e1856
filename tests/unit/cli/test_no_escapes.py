"""Reasons, ids and names that others wrote cannot drive the reader's terminal."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

import pytest
from typer.testing import CliRunner

from tailrace import cli
from tailrace.foundation import terminal
from tailrace.gateway.commands import letters
from tailrace.model.errors import ConfigError, InvalidRequest
from tailrace.scheduler import commands
from tailrace.wire.ports.letters import LetterCounts

DRIVES = "\x1b]0;owned\x07\x9b2J\u202etxt"
SHOWN = r"\x1b]0;owned\x07\x9b2J\u202etxt"


def test_an_error_is_shown_with_what_is_not_printable_escaped(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given an error with what somebody else wrote
    def fails(words: object) -> Any:
        raise InvalidRequest(f"no workload {DRIVES} is known: größer, 漢字")

    monkeypatch.setattr(cli, "tree", fails)
    # When a command ends with it
    with pytest.raises(SystemExit):
        cli.main()
    # Then it is shown as text, and letters of every language as they are
    assert capsys.readouterr().err == f"tailrace: no workload {SHOWN} is known: größer, 漢字\n"


def test_the_lines_of_an_error_stay_lines(capsys: pytest.CaptureFixture[str]) -> None:
    terminal.complain(terminal.explain(ConfigError(f"a.yaml:1: {DRIVES}\nb.yaml:2: wrong")))
    assert capsys.readouterr().err == f"a.yaml:1: {SHOWN}\nb.yaml:2: wrong\n"


def test_what_is_said_is_shown_as_text_and_its_lines_stay_lines(capsys: pytest.CaptureFixture[str]) -> None:
    terminal.say(f"job-1: {DRIVES}\ngrößer")
    assert capsys.readouterr().out == f"job-1: {SHOWN}\ngrößer\n"


def test_why_a_workload_waits_is_shown_as_text(monkeypatch: pytest.MonkeyPatch) -> None:
    # Given a hold whose detail somebody wrote
    facts = {"state": "new", "holds": [{"reason": "gate", "detail": DRIVES, "ends_at": ""}]}

    def call(work: Coroutine[Any, Any, Any]) -> Any:
        work.close()
        return facts

    monkeypatch.setattr(commands.terminal, "call", call)
    # When it is explained, Then it is text
    told = CliRunner().invoke(cli.app, ["explain", "0cb0d31187d41849"])
    assert told.stdout.splitlines()[-1] == f"1. gate: {SHOWN}"


def test_why_a_letter_stays_is_shown_as_text(monkeypatch: pytest.MonkeyPatch) -> None:
    # Given a letter that is refused for a reason with what somebody wrote, and another one of a strange function
    async def redrive(client: Any, which: Any, rate: float, moved: Any, refused: Any, advance: Any, why: str) -> None:
        moved[DRIVES] = 1
        refused.append({"id": "a", "function": "f", "refused": DRIVES})

    async def counts(client: Any, which: Any) -> Any:
        return LetterCounts([], 3)

    monkeypatch.setattr(letters, "_redrive", redrive)
    monkeypatch.setattr(letters, "_counts", counts)
    # When letters are redriven, Then both are text
    told = CliRunner().invoke(cli.app, ["dead", "redrive", "--all", "--gateway", "127.0.0.1:1"])
    assert told.stdout == f"redriven: 1 letter (1 of {SHOWN})\n"
    assert told.stderr == f"a stays: {SHOWN}\n"
