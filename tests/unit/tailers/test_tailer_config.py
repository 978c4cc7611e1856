"""A tailer's file: what is accepted, and what a mistake is answered with."""

import pytest

from tailrace.sdk.config import loads
from tailrace.sdk.model.errors import ConfigError
from tailrace.sdk.model.workload import Kind
from tailrace.sdk.source import StreamBatch
from tailrace.tailers.config import TailerConfig
from tailrace.tailers.mapping import FieldMapping
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
        ("name: t\nsource: {kind: logg}\nfunction: f", 'did you mean "log"'),
        ("name: t\nsource: {kind: log, strem: s}\nfunction: f", "did you mean 'stream'"),
        ("name: t\nsource: {kind: log}\nfunction: f", "stream"),
        ("name: t\nsource: {stream: s}\nfunction: f", "expected a mapping with a kind"),
        ("name: t\nsource: {kind: log, stream: s}", "a stream's records do not name their function"),
        ("name: t\nsource: {kind: log, stream: s}\nfunction: f\norder: key", 'add "key: {record: true}"'),
        ("name: t\nsource: {kind: log, stream: s}\nfunction: f\norder: sorted", "order"),
        ("name: t\nsource: {kind: queue}\norder: key", "in no order"),
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
    assert {"directory", "due", "log", "queue"} <= set(kinds())
    assert all(kind_of(name).name == name for name in ("directory", "due", "log", "queue"))


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
