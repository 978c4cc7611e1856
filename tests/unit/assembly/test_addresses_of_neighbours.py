"""Addresses of the parts that another one needs: named, written in the files of one configuration, or looked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from tailrace.assembly.files import delay_for, gateway_for, scheduler_for, store_for
from tailrace.foundation import looked_for
from tailrace.foundation.looked_for import LookedFor
from tailrace.foundation.notices import Posted
from tailrace.foundation.run_dir import RunDir


@pytest.fixture(autouse=True)
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A configuration directory, and a run directory in which nobody says that he listens."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TAILRACE_RUN_DIR", str(tmp_path / "run"))
    for name in ("TAILRACE_GATEWAY", "TAILRACE_SCHEDULER", "TAILRACE_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "here").mkdir()
    return tmp_path / "here"


def test_what_is_named_counts_before_what_a_file_says(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (config / "scheduler.yaml").write_text("listen: 127.0.0.1:7001\n")
    assert scheduler_for("127.0.0.1:7002", config) == "127.0.0.1:7002"
    assert scheduler_for("", config) == scheduler_for(None, config) == "127.0.0.1:7001"
    monkeypatch.setenv("TAILRACE_SCHEDULER", "127.0.0.1:7003")
    assert scheduler_for(None, config) == "127.0.0.1:7003"


@pytest.mark.parametrize(
    ("written", "called"),
    [("127.0.0.1:7001", "127.0.0.1:7001"), ("0.0.0.0:7001", "127.0.0.1:7001"), ("'[::]:7001'", "[::1]:7001")],
)
def test_an_address_to_listen_on_is_one_to_call(config: Path, written: str, called: str) -> None:
    for file, find in (("gateway", gateway_for), ("stores", store_for), ("delay", delay_for)):
        (config / f"{file}.yaml").write_text(f"listen: {written}\n")
        assert find(None, config) == called


def test_files_that_name_no_port_leave_it_to_a_look(config: Path) -> None:
    (config / "scheduler.yaml").write_text("listen: 127.0.0.1:0\n")
    (config / "gateway.yaml").write_text("{}\n")
    assert isinstance(scheduler_for(None, config), LookedFor) and isinstance(gateway_for(None, config), LookedFor)
    assert (store_for(None, config), delay_for(None, None)) == ("127.0.0.1:8790", "127.0.0.1:8789")


def test_what_was_looked_for_is_followed_when_it_turns_up_and_kept_while_it_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(looked_for, "LOOK_AGAIN", 0.0)
    answering: set[str] = set()
    monkeypatch.setattr(looked_for, "answers", lambda address: address in answering)
    run_dir = RunDir(tmp_path / "run")
    run_dir.open()
    # Given nobody there
    address = LookedFor("127.0.0.1:8788", "scheduler")
    assert address.now() == address == "127.0.0.1:8788"
    # When one says that it listens elsewhere, then it is followed
    first = Posted(run_dir, "scheduler")
    first.post("127.0.0.1:7001", "home")
    assert address.now() == "127.0.0.1:7001"
    # And one of another platform is not, also when the first one is gone
    other = Posted(run_dir, "scheduler")
    other.post("127.0.0.1:7002", "other")
    first.withdraw()
    assert address.now() == "127.0.0.1:7001"
    # And one that answers where it was found first is kept
    answering.add("127.0.0.1:8788")
    assert LookedFor("127.0.0.1:8788", "scheduler").now() == "127.0.0.1:8788"
    other.withdraw()
    run_dir.close()
