"""Metrics: every number under one name, in Prometheus' text format, and each name in the docs."""

from __future__ import annotations

import re
from pathlib import Path

from tailrace.model.alert import Alert, Backlog, LevelOverview, ObjectiveOverview
from tailrace.model.exposition import prometheus_text
from tailrace.model.metrics import CATALOGUE, NODE, READ, samples
from tailrace.model.overview import Overview, ReplayOverview, SpoolOverview, TailerOverview

ROOT = Path(__file__).parents[3]
LINE = re.compile(r'tailrace_[a-z_]+(\{[a-z]+="(?:[^"\\]|\\.)*"(,[a-z]+="(?:[^"\\]|\\.)*")*\})? -?[0-9.e+]+')


def overview() -> Overview:
    tailer = TailerOverview('o"r\n', "log", "running", read=7, lag=-1, idle=1.5, stale_writes=2, unaccounted=1)
    tailer.classes = {"succeeded": 5, "in flight": 2}
    return Overview(
        queue={"new": 3},
        tailers=[tailer, TailerOverview("b", "queue", "running", lag=0)],
        delay={"delay.5s": 4},
        spool=SpoolOverview("filling", items=2, size=9, age=3.5, taken=5, brought=3),
        replays=[
            ReplayOverview("t@replay-3", "t", "running", 9, {"succeeded": 4}),
            ReplayOverview("t@replay-4", "t", "paused"),
        ],
        levels=[LevelOverview("interactive", 31.5, 30.0, "mail", 1, 2, "mail", 1)],
        backlogs=[Backlog("queue", 3, -0.5, 60.0, 6.0), Backlog("b", 9, 2.0, 60.0)],
        alerts=[Alert("waiting", "interactive", 9.0, "what", "todo"), Alert("tailer", "b", 9.0, "what", "todo")],
        ended_peers={"frame": 2},
        objectives=[ObjectiveOverview("start_delay", "mail", "interactive", 0.95, 0.5, 40, 5.0)],
    )


def test_an_overview_says_everything_that_is_known_of_each_tailer() -> None:
    found = {(sample.metric.name, sample.labels): sample.value for sample in samples(overview())}
    own = (("tailer", 'o"r\n'), ("kind", "log"))
    assert found["tailrace.tailer.read", own] == 7
    assert found["tailrace.tailer.unaccounted", own] == 1
    assert found["tailrace.tailer.stale_writes", own] == 2
    assert found["tailrace.tailer.positions", (*own, ("class", "in flight"))] == 2
    assert found["tailrace.queue.items", (("state", "new"),)] == 3
    assert (found["tailrace.spool.items", ()], found["tailrace.spool.age", ()]) == (2, 3.5)
    replay = (("replay", "t@replay-3"), ("tailer", "t"))
    assert found["tailrace.replay.state", (*replay, ("state", "running"))] == 1
    assert found["tailrace.replay.items", replay] == 9
    assert found["tailrace.replay.progress", (*replay, ("class", "succeeded"))] == 4
    urgent = (("priority", "interactive"),)
    assert [found[f"tailrace.queue.oldest_due{end}", urgent] for end in ("", "_allowed")] == [31.5, 30]
    assert [found[f"tailrace.queue.most_attempts{end}", urgent] for end in ("", "_allowed")] == [1, 2]
    assert found["tailrace.backlog.growth", (("source", "b"),)] == 2
    assert found["tailrace.alerts", (("code", "tailer"),)] == 1
    met = (("objective", "start_delay"), ("function", "mail"), ("priority", "interactive"))
    assert found["tailrace.objective.observed", met] == 0.5
    # And what cannot be foreseen is no number
    assert {labels for name, labels in found if name == "tailrace.backlog.empty_in"} == {(("source", "queue"),)}
    # And what nobody counted is no number
    assert [labels for name, labels in found if name == "tailrace.replay.items"] == [replay]
    # And a lag that is not known is no number
    assert {labels[0][1] for name, labels in found if name == "tailrace.tailer.lag"} == {"b"}


def test_the_text_is_in_the_format_and_each_metric_stands_together() -> None:
    text = prometheus_text(samples(overview()))
    assert r'tailrace_tailer_read_total{tailer="o\"r\n",kind="log"} 7' in text.splitlines()
    assert r'tailrace_tailer_idle_seconds{tailer="o\"r\n",kind="log"} 1.5' in text.splitlines()
    assert text.endswith("\n")
    told = [line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")]
    assert len(told) == len(set(told)) == len(NODE)
    assert all(LINE.fullmatch(line) for line in text.splitlines() if not line.startswith("#"))
    assert f"# TYPE {READ.prometheus} counter" in text


def test_every_name_is_its_own_and_in_the_docs() -> None:
    names = [metric.prometheus for metric in CATALOGUE]
    assert len(set(names)) == len(names)
    docs = (ROOT / "docs" / "operating.md").read_text()
    for name in names:
        assert f"`{name}`" in docs or f"…{name.removeprefix('tailrace_tailer_')}`" in docs, name
