"""Rivals: who is chosen, what is missing, and how fast a group of processes is."""

import importlib.util
import os
from pathlib import Path

import pytest

from tailrace.bench.plot import compared
from tailrace.bench.rivals import running
from tailrace.bench.rivals.running import RIVALS, Rival, chosen, pace
from tailrace.bench.rivals.settings import Settings, settings
from tailrace.bench.rivals.tally import Tally, total
from tailrace.bench.run import Options, main
from tailrace.sdk.model.errors import ConfigError, InvalidRequest, TailraceError

WORKS = """
import time
from tailrace.bench.rivals.work import noop
while True:
    noop()
    time.sleep(0.001)
"""


def test_all_of_them_are_compared_with_when_none_is_named(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: name)
    assert [rival.name for rival in chosen("")] == list(RIVALS)
    assert [rival.name for rival in chosen("celery, loop,celery")] == ["celery", "loop"]


def test_a_rival_must_be_known():
    with pytest.raises(InvalidRequest, match=r"unknown rival 'bull': expected some of loop, faststream"):
        chosen("loop,bull")


def test_a_library_that_is_missing_is_named_with_how_to_get_it(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "celery" else name)
    with pytest.raises(ConfigError, match=r'^to compare with celery, install celery: pip .*"tailrace\[bench\]".*make'):
        chosen("loop,celery")


def test_rivals_are_for_their_scenario_only():
    with pytest.raises(InvalidRequest, match="--against is for the scenario rivals, not for idle"):
        main(Options("idle", against="loop"))


def test_settings_travel_in_the_environment():
    given = Settings("127.0.0.1:1", "topic", "group", "/tally", "redis://127.0.0.1:2/0")
    assert settings(given.environment()) == given


def test_a_process_that_was_forked_counts_for_itself(tmp_path: Path):
    tally = Tally(tmp_path)
    tally.add()
    if not (child := os.fork()):
        tally.add()
        tally.add()
        os._exit(0)
    os.waitpid(child, 0)
    tally.add()
    assert total(tmp_path) == 4
    assert len(list(tmp_path.iterdir())) == 2


async def test_a_pace_is_that_of_all_its_processes_until_the_broker_was_told(tmp_path: Path, monkeypatch):
    # Given two processes that do nothing but count
    rival = Rival("quick", (("-c", WORKS),) * 2, ())
    told = []

    async def tell() -> None:
        told.append(total(tmp_path / "tally"))

    # When they run, Then both have counted, and the broker was asked after the last item
    found = await pace(rival, Settings("", "", "", str(tmp_path / "tally")), 400, tmp_path / "log", tell)
    assert told[0] >= 400 and found.items_per_s > 0 and found.cpu_per_item >= 0
    assert len(list((tmp_path / "tally").iterdir())) in (1, 2)


async def test_a_rival_that_ends_says_why(tmp_path: Path):
    rival = Rival("broken", (("-c", "raise SystemExit('no such broker')"),), ())
    with pytest.raises(TailraceError, match="broken did not get through: no such broker"):
        await pace(rival, Settings("", "", "", str(tmp_path / "tally")), 10, tmp_path / "log", _nothing)


async def test_a_rival_that_does_nothing_is_not_waited_for(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(running, "FIRST_WITHIN", 0.05)
    rival = Rival("idle", (("-c", "import time; time.sleep(60)"),), ())
    with pytest.raises(TailraceError, match="idle did not get through"):
        await pace(rival, Settings("", "", "", str(tmp_path / "tally")), 10, tmp_path / "log", _nothing)


async def _nothing() -> None:
    """The broker knows."""


def test_the_picture_tells_how_many_times_the_fastest_is_as_fast():
    drawn = compared("a title", "a note", [("tailrace", 900.0), ("<other>", 300.0)])
    assert "300 (1/3.0)" in drawn and "&lt;other&gt;" in drawn and drawn.rstrip().endswith("</svg>")
