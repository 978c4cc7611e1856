"""The command line against a platform that `tailrace up` started: what an operator does in a day."""

import json
import re
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from scenes.live_platform import TAILRACE, Up, start

from tailrace.assembly.free_port import free_port
from tailrace.foundation.notices import Posted
from tailrace.foundation.run_dir import RunDir


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    up = start(tmp_path_factory.mktemp("live"))
    yield up
    up.process.send_signal(signal.SIGTERM)
    _, rest = up.process.communicate(timeout=60)
    assert up.process.returncode == 0, rest
    assert all(isinstance(json.loads(line), dict) for line in rest.splitlines())


def test_submit_wait_status(up: Up) -> None:
    id = up.run("submit", "greet", "name=Ann").stdout.strip()
    assert up.run("result", id, "--wait", "--timeout", "20s").stdout == '"Hello Ann"\n'
    (row,) = up.json("status", id)
    assert (row["function"], row["state"], row["priority"]) == ("greet", "success", "interactive")
    assert up.json("explain", id)["reason"] == "ended"


def test_commands_find_it_where_it_listens(up: Up) -> None:
    told = {
        name: value for name, value in up.environment.items() if name not in ("TAILRACE_GATEWAY", "TAILRACE_SCHEDULER")
    }
    newcomer = Up(up.process, up.folder, told, up.said)
    id = newcomer.run("submit", "greet", "name=Bo").stdout.strip()
    assert newcomer.run("result", id, "--wait", "--timeout", "20s").stdout == '"Hello Bo"\n'
    assert newcomer.json("inspect")["ready"] is True
    assert newcomer.json("explain", id)["reason"] == "ended"


def test_a_client_in_a_function_is_of_its_own_platform(up: Up) -> None:
    """Another platform of the same user listens, too, and has posted its address."""
    run_dir = RunDir()
    run_dir.open()
    other = Posted(run_dir, "gateway")
    other.post("127.0.0.1:8786", "data in /elsewhere")
    try:
        id = up.run("submit", "where").stdout.strip()
        assert up.run("result", id, "--wait", "--timeout", "20s").stdout == f'"{up.environment["TAILRACE_GATEWAY"]}"\n'
    finally:
        other.withdraw()
        run_dir.close()


def test_what_is_not_known_ends_with_1(up: Up) -> None:
    for command in ("status", "result", "explain", "cancel"):
        done = up.run(command, "00000000000000ff")
        assert done.returncode == 1, (command, done.stdout, done.stderr)
    assert up.run("reschedule", "00000000000000ff", "--now").returncode == 1
    assert up.run("peek", "00000000000000ff").returncode == 2
    for what in ("show", "redrive", "purge"):
        done = up.run("dead", what, "00000000000000ff")
        assert (done.returncode, "no dead letter has this id" in done.stderr) == (1, what != "show")


def test_one_that_waits_is_looked_at_and_moved(up: Up) -> None:
    # Given one whose payload would drive a terminal
    name = "\x1b[2J\x9b31m\u202eAnn"
    id = up.run("submit", "greet", f"name={name}", "--delay", "1h", "--key", "k").stdout.strip()
    # When it is looked at, as text, as JSON, and as it is
    shown = up.run("peek", id)
    assert "greet" in shown.stdout and "Ann" in shown.stdout
    assert not {"\x1b", "\x9b", "\u202e"} & {*shown.stdout}
    looked = up.run("peek", id, "--json")
    assert not {"\x1b", "\x9b", "\u202e"} & {*looked.stdout}
    seen = json.loads(looked.stdout)
    assert (seen["key"], seen["whole"], json.loads(seen["payload"])) == ("k", True, {"name": name})
    raw = subprocess.run([*TAILRACE, "peek", id, "--raw"], env=up.environment, capture_output=True, check=True).stdout
    assert json.loads(raw) == {"name": name}
    cut = up.run("peek", id, "--bytes", "3")
    assert ('{"n' in cut.stdout, "--raw all" in cut.stderr) == (True, True)
    # And moved, a little and then to now
    moved = up.json("reschedule", id, "--at", "2h", "--priority", "reporting")
    assert (moved["outcome"], moved["priority"], moved["why"]) == ("changed", "reporting", "")
    assert up.run("reschedule", id, "--now").returncode == 0
    assert up.run("result", id, "--wait", "--timeout", "20s").returncode == 0
    # Then it is over, and says so
    over = up.run("reschedule", id, "--now")
    assert (over.returncode, "submit it anew" in over.stderr) == (1, True)
    for wrong in ([], ["--now", "--at", "1h"], ["--at", "soon"], ["--priority", "high"]):
        refused = up.run("reschedule", id, *wrong)
        assert (refused.returncode, "Traceback" in refused.stderr) == (2, False), refused.stderr
    assert up.run("peek", "orders/0/7").returncode == 2


def test_quotas_are_applied_when_the_scheduler_says_so(up: Up) -> None:
    file = up.folder / "wanted.yaml"
    file.write_text("functions: {greet: {concurrency: 9}}\n")
    told = up.json("quota", "apply", str(file), "--why", "a test")
    port = up.environment["TAILRACE_SCHEDULER"].rpartition(":")[2]
    assert told["confirmed"] == [f"{socket.gethostname()}:{port}"]
    assert (told["unconfirmed"], told["changed"]) == ([], True)
    file.write_text("functions: {}\n")
    assert "is in force at" in up.run("quota", "apply", str(file)).stdout


def test_a_plan_is_compared_with_what_is_attached_and_runs_now(up: Up) -> None:
    # Given three that run until they are cancelled: on a busy machine each command takes seconds
    ids = [up.run("submit", "wait", "seconds=300").stdout.strip() for _ in range(3)]
    deadline = time.monotonic() + 20
    while [row["state"] for row in up.json("status", *ids)] != ["processing"] * 3 and time.monotonic() < deadline:
        pass
    # When quotas are planned that they are above, and that nobody could keep
    file = up.folder / "planned.yaml"
    file.write_text("functions: {wait: {concurrency: 1}, greet: {reserve: 600000}}\n")
    told = up.json("quota", "plan", str(file))
    # Then both are said, before anything changes
    assert told["attached"]["running"] >= 3
    over = [each for each in told["warnings"] if "function wait" in each]
    assert over and "3 run now or are about to, and its concurrency would be 1" in over[0]
    assert any("10000 slots at every moment, and the workers that are attached now have" in w for w in told["warnings"])
    file.write_text("functions: {wait: {concurrency: 50}}\n")
    assert up.json("quota", "plan", str(file))["warnings"] == []
    # And where no scheduler answers that is said too
    nobody = Up(up.process, up.folder, {**up.environment, "TAILRACE_SCHEDULER": "127.0.0.1:1"}, up.said)
    done = nobody.run("quota", "plan", str(file))
    assert (done.returncode, "no scheduler answers" in done.stderr) == (0, True)
    assert [row["outcome"] for row in up.json("cancel", *ids)] == ["requested"] * 3


def test_an_unknown_function_is_refused_with_those_there_are(up: Up) -> None:
    done = up.run("submit", "gret", "name=Ann")
    assert done.returncode == 2
    assert "greet" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_dead_letter_keeps_its_reason_and_payload(up: Up) -> None:
    id = up.run("submit", "fail", "reason=no such street").stdout.strip()
    failed = up.run("result", id, "--wait", "--timeout", "20s")
    assert failed.returncode == 1
    assert "no such street" in failed.stderr
    assert id in [row["id"] for row in up.json("dead", "list", "--function", "fail")]
    shown = up.json("dead", "show", id, "--payload")
    assert json.loads(shown["payload"]) == {"reason": "no such street"}
    assert "payload" not in up.json("dead", "show", id)


def test_a_killer_becomes_a_dead_letter_that_tells_signal_memory_and_note(up: Up) -> None:
    id = up.run("submit", "crash").stdout.strip()
    assert up.run("result", id, "--wait", "--timeout", "50s").returncode == 1
    shown = up.json("dead", "show", id)
    assert (shown["crashes"], shown["attempts"], shown["progress"]) == (2, 0, "page 7")
    assert re.search(
        r"2 of 2 times: the process was killed by SIGKILL after it ran \S+ s, at (most )?\S+ MiB of memory "
        r"\(it may allocate 1 GiB\); last note: page 7",
        shown["reason"],
    )
    text = up.run("dead", "show", id).stdout
    assert "killed by SIGKILL" in text
    assert "last note: page 7" in text
    # And its worker goes on
    assert up.run("submit", "greet", "name=Gus").returncode == 0


def test_dead_letters_are_redriven_with_their_history_and_purged(up: Up) -> None:
    ids = [up.run("submit", "fail", "reason=round and round").stdout.strip() for _ in range(3)]
    for id in ids:
        up.run("result", id, "--wait", "--timeout", "20s")
    mine = ("--function", "fail", "--reason", "round and round")
    assert up.json("dead", "redrive", *mine, "--dry-run") == [
        {"function": "fail", "letters": 3, "redriven_too_often": 0, "registered": True}
    ]
    assert up.json("dead", "redrive", *mine, "--rate", "20") == {"redriven": {"fail": 3}, "refused": []}
    # They die again, as other workloads, and tell it
    deadline = time.monotonic() + 20
    while len(rows := up.json("dead", "list", *mine)) < 3 and time.monotonic() < deadline:
        pass
    assert sorted(row["first_id"] for row in rows) == sorted(ids)
    assert [row["redrives"] for row in rows] == [1, 1, 1]
    text = up.run("dead", "show", rows[0]["id"]).stdout
    assert "before it was redriven" in text
    # A purge without --yes asks, and here nobody answers
    refused = up.run("dead", "purge", *mine)
    assert (refused.returncode, "--yes" in refused.stderr) == (2, True)
    assert up.run("dead", "purge").returncode == 2
    assert up.json("dead", "purge", *mine, "--yes") == {"purged": {"fail": 3}}
    assert up.json("dead", "list", *mine) == []


def test_a_gate_holds_and_explains(up: Up) -> None:
    assert up.run("gate", "pause", "greet", "--why", "maintenance").returncode == 0
    try:
        (gate,) = up.json("gate", "list")
        assert (gate["function"], gate["action"], gate["why"]) == ("greet", "pause", "maintenance")
        id = up.run("submit", "greet", "name=Bob").stdout.strip()
        facts = up.json("explain", id)
        assert facts["reason"] in ("pause", "paused")
    finally:
        up.run("gate", "resume", "greet")
    assert up.run("result", id, "--wait", "--timeout", "20s").stdout == '"Hello Bob"\n'
    assert up.json("gate", "list") == []


def test_what_the_asked_scheduler_does_not_have_is_not_said_to_rest(up: Up) -> None:
    # Given a workload that runs, and another scheduler, which never had it: as one does not that was started again
    address = f"127.0.0.1:{free_port()}"
    other = subprocess.Popen([*TAILRACE, "scheduler", "--listen", address], env=up.environment)
    id = up.run("submit", "wait", "seconds=300").stdout.strip()
    try:
        until = time.monotonic() + 60
        while up.json("explain", id)["state"] != "running" and time.monotonic() < until:
            pass
        # When that one is asked, as soon as it answers (whoever looks just before it listens finds no secret to show)
        facts = {"detail": "does not answer"}
        while "does not answer" in facts["detail"] and time.monotonic() < until:
            done = up.run("explain", id, "--scheduler", address, "--json")
            assert done.returncode == 0 or "did not show its secret" in done.stderr, done.stderr
            facts = json.loads(done.stdout) if done.returncode == 0 else facts
        # Then it is said who has it and until when, and not that it waits or is due
        assert facts["reason"] == "handed_out"
        assert re.search(r"a tailer took it.* Its lease ends in \d+", facts["detail"])
        assert not re.search(r"rests|is due", facts["detail"])
    finally:
        other.terminate()
        other.wait(60)
        up.run("cancel", id)


def test_delay_and_cancel(up: Up) -> None:
    id = up.run("submit", "greet", "name=Cy", "--delay", "1h").stdout.strip()
    assert up.json("explain", id)["reason"] == "not_due"
    assert up.run("result", id).returncode == 1
    (row,) = up.json("cancel", id)
    assert row["outcome"] == "cancelled"


def test_dedupe_key_and_count(up: Up) -> None:
    first = up.json("submit", "greet", "name=Di", "--dedupe-key", "welcome-di")
    second = up.json("submit", "greet", "name=Di", "--dedupe-key", "welcome-di")
    assert first[0]["id"] == second[0]["id"]
    assert (first[0]["duplicate"], second[0]["duplicate"]) == (False, True)
    assert len(up.json("submit", "greet", "name=Ed", "--count", "30")) == 30


def test_listings(up: Up) -> None:
    assert [row["name"] for row in up.json("function", "list")] == ["crash", "fail", "greet", "wait", "where"]
    assert up.run("quota", "set", "greet", "--rate", "500").returncode == 0
    labels = dict.fromkeys(("collection", "tenant", "downstream", "per"), "")
    numbers = {"concurrency": 0, "rate": 500.0, "burst": 0.0, "weight": 0.0, "reserve": 0.0}
    assert up.json("quota", "list") == [
        {"function": "greet", **labels, **numbers, "highest": "", "units": "", "now": ""}
    ]
    assert "queue" in [row["name"] for row in up.json("tailer", "list")]
    assert up.json("inspect")["ready"] is True
    for command in (["function", "list"], ["quota", "list"], ["tailer", "list"], ["inspect"], ["dead", "list"]):
        done = up.run(*command)
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip()


@pytest.mark.parametrize("what", ["data", "port"])
def test_what_another_run_holds_is_named(up: Up, tmp_path: Path, what: str) -> None:
    data = up.folder / "data" if what == "data" else tmp_path / "data"
    config = tmp_path / "configs"
    config.mkdir()
    for name in ("gateway", "scheduler", "delay", "stores"):
        (config / f"{name}.yaml").write_text("listen: 127.0.0.1:0\n")
    if what == "port":
        (config / "gateway.yaml").write_text(f"listen: {up.environment['TAILRACE_GATEWAY']}\n")
    done = subprocess.run(
        [*TAILRACE, "up", "--config", str(config), "--data", str(data)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert (str(data) if what == "data" else up.environment["TAILRACE_GATEWAY"]) in done.stderr


def test_an_audit_of_the_queue_adds_up(up: Up) -> None:
    id = up.run("submit", "greet", "name=Fay").stdout.strip()
    up.run("result", id, "--wait", "--timeout", "20s")
    (audit,) = up.json("audit", "queue")
    assert audit["good"]
    assert audit["counts"]["succeeded"] >= 1
    assert audit["sum"] == audit["end"] - audit["first"]
    assert up.run("audit", "nobody").returncode == 2
    assert up.run("audit", "queue", "--range", "0:10").returncode == 2


def test_a_tailer_is_paused_and_resumed_and_a_queue_has_nothing_to_seek(up: Up) -> None:
    assert up.run("tailer", "pause", "queue").stdout == "queue: paused\n"
    (tailer,) = (each for each in up.json("tailer", "list") if each["name"] == "queue")
    assert tailer["state"] == "paused"
    for arguments, why in (
        (("seek", "queue", "5", "--why", "x"), "no checkpoint"),
        (("seek", "nobody", "end", "--dry-run"), "no tailer 'nobody'"),
        (("seek", "queue", "5"), "give the reason"),
        (("seek", "queue", "noon"), "expected a position"),
    ):
        done = up.run("tailer", *arguments)
        assert done.returncode == 2
        assert why in done.stderr
    up.run("tailer", "resume", "queue")
    (tailer,) = (each for each in up.json("tailer", "list") if each["name"] == "queue")
    assert tailer["state"] != "paused"


def test_a_schedule_runs_by_itself_and_by_hand(up: Up) -> None:
    done = up.run("schedule", "add", "hello", "greet", "name=Clock", "--every", "1s", "--max-runs", "2")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("next  ") == 2
    until = time.monotonic() + 30
    while (hello := up.json("schedule", "show", "hello"))["state"] != "over" and time.monotonic() < until:
        time.sleep(0.2)
    assert (hello["state"], hello["runs"], len(hello["last"])) == ("over", 2, 2)
    assert up.run("schedule", "run-now", "hello").stdout == "hello: run 2, by hand\n"
    while time.monotonic() < until:
        clocks = [each for each in up.json("tailer", "list") if each["name"] == "schedules"]
        if clocks and clocks[0]["settled"] == 3:
            break
    (audit,) = up.json("audit", "schedules")
    assert audit["good"] and audit["counts"]["succeeded"] + audit["counts"].get("filtered", 0) == 3
    for arguments, why in (
        (("add", "x", "greet", "--cron", "0 3 * FOO *"), 'column 7: bad month "FOO"'),
        (("add", "x", "greet", "--at", "noon"), "--at is 'noon': expected a time"),
        (("add", "hello", "greet", "name=Clock", "--every", "1h"), "--replace"),
    ):
        done = up.run("schedule", *arguments)
        assert done.returncode == 2, arguments
        assert why in done.stderr and "Traceback" not in done.stderr
    assert up.run("schedule", "remove", "hello").stdout == "hello: removed\n"
    assert up.json("schedule", "list") == []
