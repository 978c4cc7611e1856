"""`tailrace auth`: the files of a fleet, and the answers to bad input."""

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
        (("auth", "show", "nowhere"), "no certificate (tls.crt) here"),
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


def test_certificates_are_listed_renewed_and_revoked_one_by_one(run: Run, tmp_path: Path) -> None:
    # Given a fleet, and a part that was issued twice
    run("auth", "init", "fleet", "--fleet", "shop", "--host", "node1.example.org", "--days", "20")
    for _ in range(2):
        assert run("auth", "issue", "fleet", "worker", "gpu-1", "--days", "7")[0] == 0
    rows = json.loads(run("auth", "list", "fleet", "--json")[1])
    gpu = [row for row in rows if row["name"] == "gpu-1"]
    assert (len(rows), [row["state"] for row in gpu]) == (len(ROLES) + 2, ["former", "in its folder"])
    # When the former is revoked alone, then the other one is not
    code, out, _ = run("auth", "revoke", "fleet", "--serial", gpu[0]["serial"])
    assert code == 0 and "worker gpu-1 of fleet shop: " in out
    listed = {row["serial"]: row["state"] for row in json.loads(run("auth", "list", "fleet", "--json")[1])}
    assert [listed[row["serial"]] for row in gpu] == ["revoked", "in its folder"]
    # When what ends within ten days is renewed, then only that is
    code, out, err = run("auth", "renew", "fleet", "--within", "10", "--json")
    assert (code, err, [row["name"] for row in json.loads(out)]) == (0, "", ["gpu-1"])
    code, out, _ = run("auth", "renew", "fleet", "--within", "5")
    assert (code, out) == (0, "fleet: nothing is due\n")
    [node] = json.loads(run("auth", "renew", "fleet", "node", "--json")[1])
    assert (node["folder"], node["hosts"][-1]) == ("fleet/node", "node1.example.org")
    # When the caller is revoked, then with all that it has
    code, out, _ = run("auth", "revoke", "fleet", "worker-gpu-1")
    assert code == 0 and gpu[1]["serial"] in out
    # And an init that is not needed changes nothing
    before = (tmp_path / "fleet" / "node" / "tls.crt").read_bytes()
    (tmp_path / "fleet" / "tailer" / "tls.crt").write_text("x")  # what is wrong is for `renew`, which comes after it
    assert run("auth", "init", "fleet", "--if-needed", "--fleet", "shop")[0] == 0
    assert (tmp_path / "fleet" / "node" / "tls.crt").read_bytes() == before
    (tmp_path / "fleet" / "client" / "tls.crt").unlink()
    _, _, err = run("auth", "init", "fleet")
    assert err == "fleet had an authority and not every role: made client\n"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("auth", "revoke", "fleet"), "PART or --serial is missing, or both are given"),
        (("auth", "revoke", "fleet", "node", "--serial", "5"), "PART or --serial is missing, or both are given"),
        (("auth", "revoke", "fleet", "--serial", "xyz"), "--serial is 'xyz': expected a number in hex"),
        (("auth", "revoke", "fleet", "--serial", "f" * 40), "expected a number in hex"),
        (("auth", "revoke", "fleet", "../fleet"), "is no folder of a certificate"),
        (("auth", "renew", "fleet", "node", "--within", "5"), "PART and --within are both given"),
        (("auth", "renew", "fleet", "nowhere"), "no certificate that the authority in fleet issued"),
        (("auth", "renew", "nowhere"), "`tailrace auth init` makes an authority"),
        (("auth", "renew", "fleet", "--days", "9999"), "--days is 9999"),
        (("auth", "list", "nowhere"), "`tailrace auth init` makes an authority"),
        (("auth", "init", "fleet", "--if-needed", "--fleet", "other"), "is of the fleet shop, and not of other"),
        (("auth", "init", "file"), "file: File exists"),
    ],
)
def test_what_cannot_be_renewed_or_revoked_is_told_in_one_message(
    run: Run, words: tuple[str, ...], says: str, tmp_path: Path
) -> None:
    run("auth", "init", "fleet", "--fleet", "shop")
    (tmp_path / "file").write_text("x")
    code, out, err = run(*words)
    assert (code, out) == (2, "") and says in err and "Traceback" not in err
