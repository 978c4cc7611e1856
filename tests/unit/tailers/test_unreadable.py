"""Records whose priority or deadline cannot be read: they have the default, and are counted."""

import pytest

from tailrace.foundation.config import loads
from tailrace.sdk.source import StreamBatch
from tailrace.tailers.config import TailerConfig
from tailrace.tailers.mapping.mapping import FieldMapping

START = "name: t\nsource: {kind: log, stream: s}\nfunction: f\n"


def mapped(text, *records):
    """Each record: its headers, its payload."""
    mapping = FieldMapping(loads(START + text, "t.yaml", TailerConfig), {"f": 1}.get)
    headers, payloads = [tuple(pairs.items()) for pairs, _ in records], [payload for _, payload in records]
    batch = StreamBatch("0", list(range(len(records))), [1.0] * len(records), [""] * len(records), headers, payloads)
    return mapping.map(batch), mapping, batch


def test_a_level_in_a_header_that_is_none_is_counted_each_time_and_an_absent_one_is_not():
    found, mapping, batch = mapped(
        "priority: {header: urgency, default: eventual}\n",
        ({"urgency": "interactive"}, b""),
        ({"urgency": "at once"}, b""),
        ({"urgency": "at once"}, b""),
        ({"urgency": ""}, b""),
        ({}, b""),
    )
    assert found.unreadable == 2
    assert [kind.priority for kind in found.kinds] == [0, 1, 1, 2, 2]
    # And as often when its headers are known, also after they were forgotten
    assert mapping.map(batch).unreadable == 2
    mapping.refresh()
    assert mapping.map(batch).unreadable == 2
    # And some of a batch do not forget it
    assert found.chosen([0]).unreadable == 2


@pytest.mark.parametrize(
    ("payload", "unreadable"),
    [
        (b'{"order": {"urgency": "interactive"}}', 0),
        (b'{"order": {"urgency": "at once"}}', 1),
        (b'{"order": {"urgency": [1]}}', 1),
        (b'{"order": 1}', 0),
        (b"{}", 0),
        (b"", 0),
        (b"no JSON", 1),
    ],
)
def test_a_level_in_a_field(payload, unreadable):
    found, *_ = mapped("priority: {field: order.urgency, default: eventual}\n", ({}, payload))
    assert found.unreadable == unreadable


@pytest.mark.parametrize(("value", "unreadable"), [("90s", 0), ("2026-01-31T08:00:00Z", 0), ("soon", 1), ("", 0)])
def test_a_deadline(value, unreadable):
    found, *_ = mapped("expires: {header: until, default: 1h}\n", ({"until": value}, b""))
    assert found.unreadable == unreadable
    found, *_ = mapped("expires: {field: until, default: 1h}\n", ({}, b'{"until": "%s"}' % value.encode()))
    assert found.unreadable == unreadable


def test_a_record_of_which_neither_can_be_read_is_one():
    text = "priority: {header: urgency}\nexpires: {field: until}\n"
    found, *_ = mapped(text, ({"urgency": "at once"}, b'{"until": "soon"}'), ({}, b"{}"))
    assert found.unreadable == 1


def test_rules_read_nothing_wrong():
    text = "priority:\n  rules:\n  - {field: amount, at_least: 10, priority: interactive}\n  default: eventual\n"
    found, *_ = mapped(text, ({}, b'{"amount": "many"}'), ({}, b"no JSON"))
    assert found.unreadable == 0
