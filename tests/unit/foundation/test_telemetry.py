"""Log lines: one form for every process, and no secret in any of them."""

import io
import json
import logging
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tailrace.foundation import telemetry
from tailrace.foundation.logger import Logger
from tailrace.model.errors import ConfigError


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield io.StringIO()
    for handler in [each for each in root.handlers if each not in handlers]:
        root.removeHandler(handler)
    root.setLevel(level)
    logging.getLogger("tailrace").setLevel(logging.NOTSET)


def test_both_kinds_of_logger_write_json_where_no_terminal_is(stream: io.StringIO) -> None:
    telemetry.set_up("worker", stream=stream, environment={})
    logging.getLogger("tailrace.runtime").warning("slow %s", "loop", extra={"function": "greet"})
    Logger("tailrace.tailer").info("reading", tailer="orders")
    first, second = (json.loads(line) for line in stream.getvalue().splitlines())
    assert (first["event"], first["level"], first["part"], first["function"]) == (
        "slow loop",
        "warning",
        "worker",
        "greet",
    )
    assert (second["event"], second["tailer"], second["logger"]) == ("reading", "orders", "tailrace.tailer")


def test_the_keys_of_a_line_are_those_that_operators_search_by(stream: io.StringIO) -> None:
    telemetry.set_up("node", stream=stream, environment={"TAILRACE_LOG": "json"})
    try:
        raise ValueError("no such row")
    except ValueError as error:
        Logger("tailrace.tailer").error("tailer failed", error, tailer="orders", rows=3, folder=Path("/data"))
        Logger("tailrace.tailer").exception("tailer failed", event="its own", level="its own")
    first, second = (json.loads(line) for line in stream.getvalue().splitlines())
    moment, trace, pid = first.pop("timestamp"), first.pop("exception"), first.pop("pid")
    assert first == {
        "event": "tailer failed",
        "level": "error",
        "logger": "tailrace.tailer",
        "part": "node",
        "tailer": "orders",
        "rows": 3,
        "folder": "/data",
    }
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", moment)
    assert trace.startswith("Traceback") and trace.endswith("ValueError: no such row") and pid == os.getpid()
    assert (second["event"], second["level"], second["exception"]) == ("tailer failed", "error", trace)


@pytest.mark.parametrize("known_as", [0, 4711])
def test_a_line_names_its_process_as_others_know_it(stream: io.StringIO, known_as: int) -> None:
    telemetry.set_up("executor", stream=stream, environment={}, number=known_as)
    logging.getLogger("tailrace.runtime").warning("here")
    assert json.loads(stream.getvalue())["pid"] == (known_as or os.getpid())


def test_text_for_people(stream: io.StringIO) -> None:
    telemetry.set_up("node", stream=stream, environment={"TAILRACE_LOG": "text"})
    Logger("tailrace.tailer").warning("clogged", tailer="orders")
    assert "     node  warning: clogged  tailer=orders" in stream.getvalue()


def test_secrets_and_payloads_are_never_written(stream: io.StringIO) -> None:
    telemetry.set_up("node", stream=stream, environment={"TAILRACE_LOG": "json"})
    Logger("tailrace.x").info(
        "hello", password="hunter2", payload="mine", options={"api_key": "hunter2", "topic": "t"}, data=b"hunter2"
    )
    assert "hunter2" not in stream.getvalue()
    assert "mine" not in stream.getvalue()
    assert json.loads(stream.getvalue())["options"] == {"api_key": "(hidden)", "topic": "t"}


def test_the_level_is_chosen_by_the_environment(stream: io.StringIO) -> None:
    telemetry.set_up("node", stream=stream, environment={"TAILRACE_LOG_LEVEL": "error"})
    Logger("tailrace.x").warning("unseen")
    logging.getLogger("tailrace.x").warning("unseen")
    assert stream.getvalue() == ""


@pytest.mark.parametrize("variable", ["TAILRACE_LOG", "TAILRACE_LOG_LEVEL"])
def test_a_wrong_choice_is_named(variable: str, stream: io.StringIO) -> None:
    with pytest.raises(ConfigError, match=variable):
        telemetry.set_up("node", stream=stream, environment={variable: "loud"})
