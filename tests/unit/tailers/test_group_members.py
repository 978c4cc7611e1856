"""Members of a consumer group: a group belongs to one tailer; brokers that a member cannot reach are in the log
once."""

from __future__ import annotations

import pytest

from tailrace.foundation.logger import facts_of
from tailrace.tailers.rules.group_members import client_name, stranger
from tailrace.tailers.sources.kafka import KafkaSourceOptions
from tailrace.tailers.sources.kafka_group import KafkaGroup


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ([], ""),
        ([client_name("orders"), client_name("orders")], ""),
        (["tailrace", client_name("orders")], ""),  # a client of ours without a membership
        (["rdkafka", client_name("orders")], "'rdkafka' at 10.0.0.7"),
        ([client_name("payments")], "'tailrace-payments' at 10.0.0.7"),  # another tailer of ours takes records as well
    ],
)
def test_a_group_is_one_tailers(names: list[str], expected: str) -> None:
    assert stranger([(name, "/10.0.0.7") for name in names], "orders") == expected


def test_brokers_that_are_away_while_the_member_goes_on_are_in_the_log_once(caplog: pytest.LogCaptureFixture) -> None:
    group = KafkaGroup(KafkaSourceOptions(topic="orders", group="g"), "orders", checkpoints=None)  # type: ignore[arg-type]
    with caplog.at_level("INFO", "tailrace.kafka"):
        for problem in ("", "no broker answers (1)", "no broker answers (2)", "", ""):
            group._see(problem)
            assert group.problem == problem
    assert [(line.getMessage(), facts_of(line)["tailer"]) for line in caplog.records] == [
        ("not connected", "orders"),
        ("connected again", "orders"),
    ]
