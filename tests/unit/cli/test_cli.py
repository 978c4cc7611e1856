"""The command line alone: the tree, exit codes, bad input. Tests that need a platform are in
tests/e2e/test_cli_live.py."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main
from hypothesis import given, settings
from hypothesis import strategies as st

import tailrace
from tailrace import cli
from tailrace.foundation import terminal
from tailrace.gateway.commands.workloads import arguments_of
from tailrace.model.errors import (
    AlreadyInUse,
    ConfigError,
    InvalidRequest,
    Overloaded,
    TailraceError,
    Unavailable,
    WorkloadFailed,
)

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["tailrace", *arguments])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        out, err = capsys.readouterr()
        return int(ended.value.code or 0), out, err

    return run


def commands(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command of the tree."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name), command


TREE = dict(commands(typer.main.get_command(cli.app)))


def test_alone_it_names_five_things_to_try(run: Run) -> None:
    code, out, _ = run()
    assert code == 0
    assert sum(line.startswith("  tailrace ") for line in out.splitlines()) == 5


def test_a_line_is_read_by_the_part_of_the_tree_that_it_names() -> None:
    # Given the first words of all commands
    for first in {path[0] for path in TREE}:
        # When one is given, then it stands alone, with all that is below it
        alone = dict(commands(typer.main.get_command(cli.tree([first, "--help"]))))
        assert sorted(alone) == [path for path in sorted(TREE) if path[0] == first]
    # And nothing is left out of help, or when nothing is plain
    assert all(cli.tree(words) is cli.app for words in ([], ["--help"], ["--debug", "up"], ["quotas"], [""]))


def test_what_it_suggests_exists() -> None:
    for line in cli.TRY.splitlines():
        if line.startswith("  tailrace "):
            words = tuple(line.split()[1:3])
            assert words in TREE or words[:1] in TREE


def test_version_says_what_a_report_of_a_defect_begins_with(run: Run) -> None:
    # Given the option alone, when it is run, then it names the program and its Python, and no command is asked for
    code, out, err = run("--version")
    assert (code, err) == (0, "")
    assert out == f"tailrace {tailrace.__version__} on Python {sys.version.split()[0]}\n"


@pytest.mark.parametrize("path", sorted(TREE), ids=" ".join)
def test_every_command_has_help_and_describes_its_options(path: tuple[str, ...]) -> None:
    command = TREE[path]
    assert command.help
    for parameter in command.params:
        if parameter.param_type_name == "option" and parameter.name != "help":
            assert parameter.help, f"{path}: --{parameter.name}"


@pytest.mark.parametrize("path", sorted(path for path in TREE if path[-1] in ("list", "status", "inspect", "explain")))
def test_every_listing_takes_json(path: tuple[str, ...]) -> None:
    assert any("--json" in parameter.opts for parameter in TREE[path].params)


def test_help_is_quick_because_nothing_heavy_is_loaded() -> None:
    code = "import sys; import tailrace.cli; print([m for m in ('grpc','pydantic','yaml','rich') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["bogus"], "No such command 'bogus'"),
        (["submit"], "Missing argument 'FUNCTION'"),
        (["submit", "f", "x"], "'x' is not an argument: expected key=value"),
        (["submit", "f", "x=1", "x=2"], "'x' is given twice"),
        (["submit", "f", "--json-arguments", "[1"], "--json-arguments is not JSON"),
        (["submit", "f", "--json-arguments", "[1]"], "expected an object"),
        (["submit", "f", "--count", "2", "--dedupe-key", "k"], "leave one of them out"),
        (["submit", "f", "--delay", "soon"], "'soon' is not a duration"),
        (["submit", "f", "--priority", "urgent"], "unknown priority 'urgent'"),
        (["gate", "list", "--gateway", "nowhere"], "expected host:port"),
        (["dead", "redrive"], "no letters are chosen"),
        (["dead", "purge", "--yes"], "give --all to purge every letter"),
        (["dead", "list", "--since", "lately"], "--since is 'lately': expected how long ago"),
        (["audit", "orders", "--range", "10"], "--range is '10': expected two positions"),
        (["replay", "orders", "--from", "start"], "Missing option '--to'"),
        (["replay", "orders", "--from", "lately", "--to", "end"], "--from is 'lately': expected a position, \"start\""),
        (["tailer", "seek", "orders", "soon"], "TO is 'soon': expected a position, \"start\""),
        (["tailer", "seek", "orders", "9223372036854775808"], "no position is above 9223372036854775807"),
        (["find", "--state", "enqueud"], "did you mean 'enqueued'?"),
        (["gateway", "--listen", "nowhere"], "'nowhere' is not an address to listen on"),
        (["replay", "start", "list", "--from", "", "--to", "end"], "--from is empty"),
        (["replay", "show", "x"], "'x' is not a valid whole number"),
        (["up", "--config", "absent"], "no such configuration directory"),
        (["tailer", "validate", "absent.yaml"], "absent.yaml: no such file"),
        (["scheduler", "--listen", "0.0.0.0:9000", "--no-gateway"], "loopback"),
        (["worker"], "Missing argument"),
    ],
)
def test_bad_input_ends_with_2_one_message_and_no_traceback(
    run: Run, arguments: list[str], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert says in err
    assert "Traceback" not in err


def test_nobody_there_ends_with_3(run: Run) -> None:
    code, _, err = run("gate", "list", "--gateway", "127.0.0.1:1")
    assert code == 3
    assert "127.0.0.1:1" in err


def test_up_reports_every_mistake_of_every_file_and_starts_nothing(run: Run, tmp_path: Path) -> None:
    config = tmp_path / "configs"
    (config / "tailers").mkdir(parents=True)
    (config / "gateway.yaml").write_text("lsten: 127.0.0.1:1\n")
    (config / "leases.yaml").write_text("heartbeat: 5s\nworker: 1s\n")
    (config / "tailers" / "a.yaml").write_text("name: a\nsource: {kind: lgo, stream: x}\nfunction: f\n")
    code, _, err = run("up", "--config", str(config), "--data", str(tmp_path / "data"))
    assert code == 2
    assert "gateway.yaml:1: unknown key 'lsten'; did you mean 'listen'?" in err
    assert "leases.yaml" in err
    assert 'a.yaml:2: source.kind: unknown kind "lgo"' in err
    assert not (tmp_path / "data").exists()


def test_validate_says_of_each_file_whether_it_is_right(run: Run, tmp_path: Path) -> None:
    good, bad, twin = (tmp_path / name for name in ("good.yaml", "bad.yaml", "twin.yaml"))
    good.write_text("name: a\nsource: {kind: log, stream: s}\nfunction: f\n")
    twin.write_text(good.read_text())
    bad.write_text("name: b\nsource:\n  kind: log\n  strem: s\nfunction: f\n")
    code, out, err = run("tailer", "validate", str(good), str(bad), str(twin))
    assert code == 2
    assert out == f"{good}: right (tailer a, kind log)\n"
    assert f"{bad}:4: unknown key 'strem' under source; did you mean 'stream'?" in err
    assert f"{twin}: the tailer 'a' is also in {good}" in err
    code, out, _ = run("tailer", "validate", "--json", str(good), str(bad))
    assert [row["ok"] for row in json.loads(out)] == [True, False]


def test_the_schema_knows_the_kinds(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    # Given that no client library of a source is installed
    monkeypatch.setattr("tailrace.tailers.registry.EntryPoint.load", lambda point: pytest.fail(f"{point.name} needed"))
    # When the schema is asked for, Then it has all kinds that a file may name
    code, out, _ = run("tailer", "schema")
    assert code == 0
    kinds = [choice["properties"]["kind"].get("const") for choice in json.loads(out)["properties"]["source"]["anyOf"]]
    assert kinds == ["directory", "kafka", "log", "objects", "outbox", "queue", "redis_stream", "schedule", None]


def test_version(run: Run) -> None:
    assert "tailrace" in json.loads(run("version", "--json")[1])


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ConfigError("x"), 2),
        (InvalidRequest("x"), 2),
        (Unavailable("x"), 3),
        (Overloaded("x"), 3),
        (AlreadyInUse("x"), 1),
        (WorkloadFailed("x"), 1),
        (TailraceError("x"), 1),
    ],
)
def test_exit_codes(error: TailraceError, code: int) -> None:
    assert terminal.exit_code(error) == code


def test_debug_shows_the_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAILRACE_DEBUG", "")
    monkeypatch.setattr(sys, "argv", ["tailrace", "--debug", "up", "--config", "/absent"])
    with pytest.raises(ConfigError):
        cli.main()


json_values = st.none() | st.booleans() | st.integers() | st.text() | st.lists(st.text() | st.integers(), max_size=3)
names = st.from_regex(r"[a-z_][a-z0-9_]{0,8}", fullmatch=True)


@given(st.dictionaries(names, json_values, max_size=4))
@settings(max_examples=50)
def test_arguments_as_pairs_or_as_one_object_mean_the_same(given_: dict[str, Any]) -> None:
    pairs = [f"{name}={json.dumps(value)}" for name, value in given_.items()]
    assert arguments_of(pairs, None) == arguments_of([], json.dumps(given_)) == given_


def test_what_is_not_json_is_text() -> None:
    assert arguments_of(["name=Ann", "n=5", 'zip="01"', "e=", "x=a=b"], None) == {
        "name": "Ann",
        "n": 5,
        "zip": "01",
        "e": "",
        "x": "a=b",
    }


def test_a_listing_cannot_drive_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    terminal.show([{"id": "a", "reason": "\x1b[31mred\nline"}], ["id", "reason"], False)
    assert capsys.readouterr().out == "ID  REASON\na   \\x1b[31mred\\nline\n"


def test_moments_and_distances() -> None:
    assert terminal.moment(0) is None
    assert str(terminal.moment(1.0))[:5] in ("1969-", "1970-")
    assert (terminal.distance(61.3), terminal.distance(0.25)) == ("1m1s", "250ms")


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (("--rate", "5/fortnight"), 'text like "500/min"'),
        (("--rate", "-5"), "not a rate"),
        (("--rate", "nan"), "not a rate"),
        (("--units", "tokens"), "expected UNIT=RATE"),
        (("--units", "tokens=many"), "not a rate"),
        (("--units", "tokens=5,bust=3"), "expected UNIT=RATE"),
        (("--units", "tokens=5,burst=x"), "expected UNIT=RATE"),
        (("--units", "tokens=5,burst=nan"), "burst of tokens is nan"),
        (("--units", "tokens=0"), "no rate"),
        (("--units", "a b=5"), "not a name"),
        (("--units", "tokens=5", "--units", "tokens=6"), "two rates"),
        (("--units", "\udcff=5"), "not a name"),
        (("--units", "x" * 100_000), "expected UNIT=RATE"),
    ],
)
def test_rates_that_cannot_be_are_refused_before_anybody_is_asked(run: Run, given: tuple[str, ...], says: str) -> None:
    code, _, err = run("quota", "set", "--downstream", "d", *given, "--gateway", "127.0.0.1:1")
    assert code == 2
    assert says in " ".join(err.split()).replace("│ ", "")
    assert "Traceback" not in err and len(err) < 3000
