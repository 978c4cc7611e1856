"""`tailrace auth`: what a fleet is made of, and what bad input is told."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tailrace import cli
from tailrace.model.caller import ROLES

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["tailrace", *arguments])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        out, err = capsys.readouterr()
        return int(ended.value.code or 0), out, err

    return run


def test_a_fleet_has_a_certificate_for_each_role(run: Run, tmp_path: Path) -> None:
    code, out, _ = run("auth", "init", "fleet", "--fleet", "shop", "--host", "node1.example.org", "--json")
    assert code == 0
    rows = json.loads(out)
    assert [row["role"] for row in rows] == sorted(ROLES)
    assert {row["fleet"] for row in rows} == {"shop"}
    serving = {row["role"] for row in rows if "node1.example.org" in row["hosts"]}
    assert serving == {"gateway", "node", "scheduler"}
    # When one more is issued
    code, out, _ = run("auth", "issue", "fleet", "worker", "gpu-1", "--days", "7")
    assert code == 0 and "gpu-1" in out and (tmp_path / "fleet" / "worker-gpu-1" / "tls.key").exists()
    # And no key is in what is said of them
    assert "PRIVATE" not in run("auth", "show", "fleet")[1]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("auth", "init", "fleet"), "fleet has an authority already"),
        (("auth", "init", "new", "--fleet", "a b"), "'a b' is no fleet"),
        (("auth", "init", "new", "--host", "h:8786"), "is no host: expected a name or an address"),
        (("auth", "init", "new", "--days", "0"), "--days is 0: expected 1 to 825"),
        (("auth", "issue", "fleet", "wroker", "x"), "did you mean 'worker'?"),
        (("auth", "issue", "fleet", "worker", "a/b"), "'a/b' is no name"),
        (("auth", "issue", "nowhere", "worker", "x"), "`tailrace auth init` makes an authority"),
        (("auth", "show", "nowhere"), "no certificate here (tls.crt)"),
        (("auth", "token", "create", "x"), "Missing option '--may'"),
        (("auth", "token", "create", "x", "--may", "read", "--for", "soon"), "'soon' is not a duration"),
        (("scheduler", "--listen", "10.0.0.1:1", "--no-gateway"), "`tailrace auth init DIR --host NAME` makes some"),
    ],
)
def test_bad_input_is_told_in_one_message(run: Run, words: tuple[str, ...], says: str, tmp_path: Path) -> None:
    run("auth", "init", "fleet")
    code, out, err = run(*words)
    assert (code, out) == (2, "") and says in err and "Traceback" not in err
    assert not (tmp_path / "new").exists()


def test_what_is_wrong_with_a_certificate_is_shown_and_ends_with_1(run: Run, tmp_path: Path) -> None:
    run("auth", "init", "fleet")
    (tmp_path / "fleet" / "worker" / "tls.crt").write_text("x")
    code, out, _ = run("auth", "show", "fleet", "--json")
    assert code == 1
    assert [row["folder"] for row in json.loads(out) if row["wrong"]] == ["fleet/worker"]


def test_a_part_whose_certificates_cannot_be_used_does_not_start(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TAILRACE_TLS", str(tmp_path / "nowhere"))
    code, _, err = run("scheduler", "--listen", "127.0.0.1:0", "--no-gateway")
    assert code == 2 and "no such folder of certificates; expected one with tls.crt" in err
