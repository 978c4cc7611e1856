"""Log lines: one form for every process, and no secret in any of them."""

import io
import json
import logging
from collections.abc import Iterator

import pytest
import structlog

from tailrace.sdk import telemetry
from tailrace.sdk.model.errors import ConfigError


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield io.StringIO()
    for handler in [each for each in root.handlers if each not in handlers]:
        root.removeHandler(handler)
    root.setLevel(level)
    logging.getLogger("tailrace").setLevel(logging.NOTSET)
    structlog.reset_defaults()


def test_both_kinds_of_logger_write_json_where_no_terminal_is(stream: io.StringIO) -> None:
    telemetry.set_up("worker", stream=stream, environment={})
    logging.getLogger("tailrace.runtime").warning("slow %s", "loop", extra={"function": "greet"})
    structlog.get_logger("tailrace.tailer").info("reading", tailer="orders")
    first, second = (json.loads(line) for line in stream.getvalue().splitlines())
    assert (first["event"], first["level"], first["part"], first["function"]) == (
        "slow loop",
        "warning",
        "worker",
        "greet",
    )
    assert (second["event"], second["tailer"], second["logger"]) == ("reading", "orders", "tailrace.tailer")


def test_text_for_people(stream: io.StringIO) -> None:
    telemetry.set_up("node", stream=stream, environment={"TAILRACE_LOG": "text"})
    structlog.get_logger("tailrace.tailer").warning("clogged", tailer="orders")
    assert "     node  warning: clogged  tailer=orders" in stream.getvalue()


def test_secrets_and_payloads_are_never_written(stream: io.StringIO) -> None:
    telemetry.set_up("node", stream=stream, environment={"TAILRACE_LOG": "json"})
    structlog.get_logger("tailrace.x").info(
        "hello", password="hunter2", payload="mine", options={"api_key": "hunter2", "topic": "t"}, data=b"hunter2"
    )
    assert "hunter2" not in stream.getvalue()
    assert "mine" not in stream.getvalue()
    assert json.loads(stream.getvalue())["options"] == {"api_key": "(hidden)", "topic": "t"}


def test_the_level_is_chosen_by_the_environment(stream: io.StringIO) -> None:
    telemetry.set_up("node", stream=stream, environment={"TAILRACE_LOG_LEVEL": "error"})
    structlog.get_logger("tailrace.x").warning("unseen")
    logging.getLogger("tailrace.x").warning("unseen")
    assert stream.getvalue() == ""


@pytest.mark.parametrize("variable", ["TAILRACE_LOG", "TAILRACE_LOG_LEVEL"])
def test_a_wrong_choice_is_named(variable: str, stream: io.StringIO) -> None:
    with pytest.raises(ConfigError, match=variable):
        telemetry.set_up("node", stream=stream, environment={variable: "loud"})
