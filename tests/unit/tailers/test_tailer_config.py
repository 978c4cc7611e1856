"""A tailer's file: values that are accepted, and answers to mistakes."""

import pytest

from tailrace.foundation.config import loads
from tailrace.model.errors import ConfigError
from tailrace.model.workload import Kind
from tailrace.sdk.source import StreamBatch
from tailrace.stores.kafka import clients
from tailrace.tailers.config import TailerConfig
from tailrace.tailers.mapping.mapping import FieldMapping
from tailrace.tailers.registry import kind_of, kinds


def load(text):
    return loads(text, "t.yaml", TailerConfig)


def test_the_example_of_the_design():
    config = load("""
name: orders
source: {kind: log, stream: orders}
function: process_order
priority: user_visible
retry: {max_attempts: 20, backoff: exponential, first: 5s, max: 6h}
window: {items: 2000, bytes: 16MiB, positions: 100000}
""")
    assert config.retry.policy().max == 6 * 3600 and config.window.rule().bytes == 16 << 20


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("source: {kind: log, stream: s}\nfunction: f", "'name' is missing"),
        ("name: t\nsource: {kind: log, stream: s}\nfunctoin: f", "did you mean 'function'"),
        ("name: t\nsource: {kind: logg}\nfunction: f", "did you mean 'log'"),
        ("name: t\nsource: {kind: log, strem: s}\nfunction: f", "did you mean 'stream'"),
        ("name: t\nsource: {kind: log}\nfunction: f", "stream"),
        ("name: t\nsource: {stream: s}\nfunction: f", "expected a mapping with a kind"),
        ("name: t\nsource: {kind: log, stream: s}", "a stream's records do not name their function"),
        ("name: t\nsource: {kind: log, stream: s}\nfunction: f\norder: key", 'add "key: {record: true}"'),
        ("name: t\nsource: {kind: log, stream: s}\nfunction: f\norder: sorted", "order"),
        ("name: t\nsource: {kind: queue}\norder: key", "in no order"),
        ("name: t\nsource: {kind: queue}\nfunction: f", "name it in `functions` under source"),
        ("name: t\nsource: {kind: queue}\ncollection: c", "the collection that it was submitted with: leave"),
        ("name: t\nsource: {kind: queue}\ntenant: {header: x}", "the tenant that it was submitted with: leave"),
        ("name: t\nsource: {kind: queue}\nkey: {header: x}", "the key that it was submitted with: leave"),
        ("name: t\nsource: {kind: queue}\npriority: interactive", "the priority that it was submitted with: leave"),
        ("name: t\nsource: {kind: queue}\nallow_loss: [retention]", 'leave "retention" out'),
        ("name: t\nsource: {kind: log, stream: s}\nfunction: f\nallow_loss: [anything]", "'retention'"),
        ("name: t\nsource: {kind: log, stream: s}\nfunction: f\npriority: urgent", "unknown priority 'urgent'"),
        ("name: t\nsource: {kind: log, stream: s}\nfunction: f\nretry: {max: soon}", "is not a duration"),
        ("name: t\nsource: {kind: log, stream: s}\nfunction: f\nretry: {max_attempts: 0}", "expected 1 to 10000"),
        ("name: t\nsource: {kind: log, stream: s}\nfunction: f\nwindow: {items: 0}", "greater than or equal to 1"),
        ("name: t\nsource: {kind: directory, path: /x, payload: text}\nfunction: f", "'reference' or 'content'"),
    ],
)
def test_a_mistake_is_named_with_its_place(text, answer):
    with pytest.raises(ConfigError, match=r"^t\.yaml:\d+: ") as raised:
        load(text)
    assert answer in str(raised.value)


def test_all_mistakes_are_named_at_once():
    """Given mistakes at the top and inside `source`, the answer has each with its line."""
    with pytest.raises(ConfigError) as caught:
        load("name: a\nsource: {kind: log, strem: x}\nfunction: f\nwindw: {items: 3}\npriority: urgent\n")
    lines = str(caught.value).splitlines()
    assert [line.split(":")[1] for line in lines] == ["2", "2", "4", "5"]
    assert "did you mean 'stream'?" in lines[1] and "did you mean 'window'?" in lines[2]


def test_every_built_in_kind_loads():
    assert {"directory", "log", "queue"} <= set(kinds())
    assert all(kind_of(name).name == name for name in ("directory", "due", "log", "queue"))


def test_what_the_platform_makes_itself_is_not_offered():
    with pytest.raises(ConfigError, match='unknown kind "somethng": expected directory, kafka'):
        load("name: t\nsource: {kind: somethng}\nfunction: f")


def test_a_client_of_kafka_that_is_not_installed_is_told_with_its_place(monkeypatch):
    # Given an environment without a client of Kafka
    monkeypatch.setattr(clients, "find_spec", lambda package: None)
    # When a file names a topic, Then it is refused at its line, with what to install
    for client, extra in (("kafka-python", "kafka"), ("confluent", "kafka-native")):
        with pytest.raises(ConfigError, match=rf"^t\.yaml:2: .*client \"{client}\" needs .*tailrace\[{extra}\]"):
            load(f"name: t\nsource: {{kind: kafka, topic: a, group: g, client: {client}}}\nfunction: f")


def batch(*headers, keys=None):
    count = len(headers)
    return StreamBatch(
        "3", list(range(7, 7 + count)), [0.0] * count, keys or [""] * count, list(headers), [b""] * count
    )


def test_fields_come_from_headers_with_defaults_and_the_rest_travels_on():
    config = load("""
name: t
source: {kind: log, stream: s}
function: {header: fn}
tenant: {header: who, default: nobody}
collection: c
key: {record: true}
""")
    mapping = FieldMapping(config, {"f": 0}.get)
    mapped = mapping.map(batch((("fn", "f"), ("who", "a"), ("trace", "1")), (("x", "y"),), keys=["k", ""]))
    assert mapped.kinds == [Kind("f", 0, "c", "a"), Kind("", 2, "c", "nobody")]
    assert mapped.ids == ["t/3/7", "t/3/8"] and mapped.attempts == [1, 1]
    assert mapped.extras[0].key == "k" and mapped.extras[0].headers == (("trace", "1"),)
    assert mapped.extras[1].headers == (("x", "y"),)


def test_a_priority_follows_what_the_function_says_of_itself():
    own = {}
    mapping = FieldMapping(load("name: t\nsource: {kind: log, stream: s}\nfunction: f"), own.get)
    assert mapping.map(batch(())).kinds == [Kind("f", 2)]
    own["f"] = 1
    mapping.refresh()
    assert mapping.map(batch(())).kinds == [Kind("f", 1)] and mapping.kind(Kind("f", 2)) == Kind("f", 1)


RECORDS = "name: t\nsource: {kind: log, stream: s}\nfunction: f\n"


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("priority: {heder: x}", "did you mean 'header'?"),
        ("priority: {fild: x}", "did you mean 'field'?"),
        ("priority: {header: x, defalt: eventual}", "unknown key 'defalt' under priority; did you mean 'default'?"),
        ("priority: {field: x, default: high}", "unknown priority 'high'"),
        ("priority: {rules: []}", "expected 1 to 64 rules, got 0"),
        ("priority: {rules: [{field: a, priority: hi}]}", "priority.rules.0.priority: unknown priority 'hi'"),
        ("priority: {rules: [{field: a, iss: 3, priority: eventual}]}", "did you mean 'is'?"),
        ("priority: {rules: [{field: a, header: b, priority: eventual}]}", "either a header or a field"),
        ("priority: {rules: [{field: a, is: {b: 1}, priority: eventual}]}", "a value or a list of values"),
        ("priority: {header: x}\norder: partition", 'write "order: key"'),
        ("look_ahead: 100", "all records have one priority"),
        ("priority: {header: x}\nlook_ahead: 200000", "beyond window.positions (100000)"),
        ("lookahead: 100", "did you mean 'look_ahead'?"),
        ("highest_priority: urgent", "unknown priority 'urgent'"),
        ("priority: interactive\nhighest_priority: eventual", "which is more urgent"),
        ("expires: soon", "'soon' is not a duration"),
        ("expires: 0", "expected a time above 0"),
        ("expires: {header: x, default: soon}", "default is 'soon'"),
        ("expires: {rules: []}", "known keys: default, field, header"),
        ("on_expiry: dead_letter", 'add "expires: 1h"'),
        ("expires: 1h\non_expiry: bury", "'settle' or 'dead_letter'"),
    ],
)
def test_a_mistake_about_urgency_is_named_with_its_place(text, answer):
    with pytest.raises(ConfigError, match=r"^t\.yaml:\d+: ") as raised:
        load(RECORDS + text)
    assert answer in str(raised.value) and "from_" not in str(raised.value)


@pytest.mark.parametrize(
    "text", ["priority: {header: x}", "expires: 1h", "on_expiry: settle", "look_ahead: 5", "highest_priority: eventual"]
)
def test_a_queue_has_the_urgency_that_its_items_were_submitted_with(text):
    with pytest.raises(ConfigError, match=r"^t\.yaml:3: .*submitted with: leave the key out"):
        load(f"name: t\nsource: {{kind: queue}}\n{text}")


@pytest.mark.parametrize(
    ("text", "looks_ahead"),
    [
        ("", 0),
        ("priority: interactive", 0),
        ("priority: {header: x}", 4096),
        ("priority: {field: x}\nwindow: {items: 100}", 50),
        ("priority: {header: x}\nlook_ahead: 9", 9),
        ("priority: {header: x}\nfunction: {header: f}", 0),
    ],
)
def test_how_far_a_tailer_looks(text, looks_ahead):
    base = RECORDS.replace("function: f\n", "") if "function" in text else RECORDS
    assert load(base + text).looks_ahead == looks_ahead


def _levels(text, *records):
    mapping = FieldMapping(load(RECORDS + text), {"f": 1}.get)
    heads, payloads = [headers for headers, _ in records], [payload for _, payload in records]
    count = len(records)
    read = StreamBatch("0", list(range(count)), [1000.0] * count, [""] * count, heads, payloads)
    mapped = mapping.map(read)
    assert [cell.priority for cell in mapped.cells] == [kind.priority for kind in mapped.kinds]
    return mapped


@pytest.mark.parametrize(
    ("text", "levels"),
    [
        ("priority: {header: p}", [0, 3, 1, 1]),
        ("priority: {header: p}\nhighest_priority: eventual", [2, 3, 2, 2]),
        ("priority: {header: p, default: interactive}\nhighest_priority: user_visible", [1, 3, 1, 1]),
        ("priority: {field: p}\nhighest_priority: eventual", [2, 2, 2, 2]),
        ("priority: {rules: [{field: p, priority: interactive}]}\nhighest_priority: user_visible", [1, 1, 1, 1]),
        ("highest_priority: reporting", [3, 3, 3, 3]),
        ("priority: reporting\nhighest_priority: eventual", [3, 3, 3, 3]),
    ],
)
def test_no_item_is_more_urgent_than_its_source_allows(text, levels):
    records = [
        ((("p", "interactive"),), b'{"p": "interactive"}'),
        ((("p", "reporting"),), b'{"p": "user_visible"}'),
        ((("p", "nonsense"),), b'{"p": {"p": 1}}'),
        ((), b"no JSON"),
    ]
    assert [kind.priority for kind in _levels(text, *records).kinds] == levels


def test_a_kind_of_a_capped_source_is_capped_whatever_its_function_says_later():
    own = {"f": 0}
    mapping = FieldMapping(load(RECORDS + "highest_priority: eventual"), own.get)
    assert mapping.kind(Kind("f", 3)) == Kind("f", 2)
    own["f"] = 3
    assert mapping.kind(Kind("f", 2)) == Kind("f", 3)


def test_a_priority_may_stand_in_the_payload():
    payloads = [b'{"order":{"urgency":"interactive"}}', b'{"order":{"urgency":0}}', b"no", b'{"order":[]}', b"\xff" * 9]
    payloads += [b'{"order":{"urgency":true}}', b'{"order":{"urgency":"interactive"}}' + b" " * (256 << 10)]
    mapped = _levels("priority: {field: order.urgency, default: reporting}", *(((), payload) for payload in payloads))
    assert [kind.priority for kind in mapped.kinds] == [0, 0, 3, 3, 3, 3, 3]
    mapped = _levels("priority: {field: urgency}", ((), b"{}"))
    assert mapped.kinds == [Kind("f", 1)], "the function's own"


def test_the_first_rule_that_a_record_meets_says_its_priority():
    rules = """priority:
  rules:
    - {header: type, is: [refund, 7], priority: interactive}
    - {field: amount, at_least: 1000, at_most: 2000, priority: user_visible}
    - {field: vip, is: true, priority: user_visible}
    - {header: note, priority: eventual}
  default: reporting
"""
    mapped = _levels(
        rules,
        ((("type", "refund"),), b'{"amount": 1500}'),
        ((("type", "7"),), b""),
        ((("type", "other"),), b'{"amount": 1000}'),
        ((), b'{"amount": "1500"}'),
        ((), b'{"amount": 2000.5}'),
        ((), b'{"amount": null, "vip": true}'),
        ((("note", ""),), b'{"amount": [1500]}'),
        ((), b"[1500]"),
    )
    assert [kind.priority for kind in mapped.kinds] == [0, 0, 1, 1, 3, 1, 2, 3]
    assert mapped.extras[0].headers == (("type", "refund"),), "what rules look at travels on"


def test_a_record_says_until_when_it_may_start():
    records = [((("until", value),), b"") for value in ("90s", "1700000000", "junk")]
    mapped = _levels("expires: {header: until, default: 10s}", *records, ((), b""))
    assert [mapped.expires_at(index) for index in range(4)] == [1090.0, 1700000000.0, 1010.0, 1010.0]
    assert mapped.extras[0].headers == ()
    mapped = _levels("expires: {field: until}", ((), b'{"until": "5s"}'), ((), b"{}"))
    assert [mapped.expires_at(index) for index in range(2)] == [1005.0, 0.0]
    assert _levels("expires: 1h", ((), b"")).expires_at(0) == 4600.0
