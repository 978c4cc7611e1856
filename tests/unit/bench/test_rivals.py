"""Rivals: the choice of them, missing ones, the speed of a group of processes, and their submitters."""

import importlib.util
import os
import threading
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tailrace.bench.plot import compared, waited
from tailrace.bench.rivals import feeding, running
from tailrace.bench.rivals.feeding import RivalFeeder
from tailrace.bench.rivals.feeding import main as feeder_main
from tailrace.bench.rivals.on_queues import queue_rivals
from tailrace.bench.rivals.roster import RIVALS, Rival, chosen
from tailrace.bench.rivals.running import feed, pace, waits
from tailrace.bench.rivals.settings import RivalSettings, settings
from tailrace.bench.rivals.tally import RunTally, latest, total
from tailrace.bench.rivals.work import ends
from tailrace.bench.run import BenchOptions, _rivals_drawn, main
from tailrace.model.errors import ConfigError, InvalidRequest, TailraceError

WORKS = """
import time
from tailrace.bench.rivals.work import noop
while True:
    noop()
    time.sleep(0.001)
"""


def test_all_of_them_are_compared_with_when_none_is_named(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: name)
    for engine, known in RIVALS.items():
        assert chosen("", engine) == list(known)
    assert [rival.name for rival in chosen("celery, loop,celery")] == ["celery", "loop"]


def test_a_rival_must_be_known():
    with pytest.raises(InvalidRequest, match=r"unknown rival 'bull' on kafka: expected some of loop, faststream"):
        chosen("loop,bull")
    with pytest.raises(InvalidRequest, match="unknown rival 'celery' on postgres: expected some of procrastinate"):
        chosen("celery", "postgres")


def test_an_engine_must_have_rivals():
    with pytest.raises(InvalidRequest, match="unknown engine 'sqlite' of rivals: expected one of kafka, redis"):
        main(BenchOptions("rivals", engine="sqlite"))


def test_a_library_that_is_missing_is_named_with_how_to_get_it(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "celery" else name)
    with pytest.raises(ConfigError, match=r"^to compare with celery, install celery: `make rivals`$"):
        chosen("loop,celery")


def test_rivals_are_for_their_scenario_only():
    with pytest.raises(InvalidRequest, match="--against is for the scenario rivals, not for idle"):
        main(BenchOptions("idle", against="loop"))


@pytest.mark.parametrize(
    "options", [BenchOptions("rivals", part="drain"), BenchOptions("queue", engine="redis", part="drain")]
)
def test_parts_are_for_rivals_on_an_engine_only(options: BenchOptions):
    with pytest.raises(InvalidRequest, match="--part is for the scenario rivals with an --engine other than kafka"):
        main(options)


async def test_a_part_must_be_known(tmp_path: Path):
    with pytest.raises(InvalidRequest, match="--part sprint: expected drain, latency or chord"):
        await queue_rivals(tmp_path, 10, lambda what, share: None, "redis", [], "sprint")


def test_settings_travel_in_the_environment():
    given = RivalSettings("/tally", "redis://127.0.0.1:2/0", "/starts", "127.0.0.1:1", "topic", "group")
    assert settings(given.environment()) == given


def test_a_process_that_was_forked_counts_for_itself(tmp_path: Path):
    tally = RunTally(tmp_path)
    tally.add()
    if not (child := os.fork()):
        tally.add()
        tally.add()
        os._exit(0)
    os.waitpid(child, 0)
    tally.add()
    assert total(tmp_path) == 4
    assert len(list(tmp_path.iterdir())) == 2


def test_threads_that_count_at_once_lose_none(tmp_path: Path):
    tally = RunTally(tmp_path)

    def count() -> None:
        for _ in range(20_000):
            tally.add()

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert total(tmp_path) == 80_000


def test_the_latest_of_all_that_told_their_time_is_known(tmp_path: Path):
    # Given threads that count, of which two tell when
    tally = RunTally(tmp_path)
    assert latest(tmp_path) == 0.0
    for at in (3_000_000_000, 0, 2_000_000_000):
        thread = threading.Thread(target=tally.add, args=(at,))
        thread.start()
        thread.join()

    # When they are read, then the later one counts, and all are counted
    assert (latest(tmp_path), total(tmp_path)) == (3.0, 3)


def test_gatherings_that_ended_are_read_from_the_file_of_the_run(tmp_path: Path):
    assert ends(tmp_path / "ends") == []
    (tmp_path / "ends").write_text("12.500000 64\n13.000000 2000\n")
    assert ends(tmp_path / "ends") == [(12.5, 64), (13.0, 2000)]


async def test_a_chord_needs_a_rival_that_has_one(tmp_path: Path):
    [dramatiq] = [rival for rival in RIVALS["redis"] if rival.name == "dramatiq"]
    with pytest.raises(InvalidRequest, match="--part chord: no rival on redis that was asked for has one"):
        await queue_rivals(tmp_path, 10, lambda what, share: None, "redis", [dramatiq], "chord")


async def test_a_pace_is_that_of_all_its_processes_until_the_broker_was_told(tmp_path: Path, monkeypatch):
    # Given two processes that do nothing but count
    rival = Rival("quick", (("-c", WORKS),) * 2, ())
    told = []

    async def tell() -> None:
        told.append(total(tmp_path / "tally"))

    # When they run, Then both have counted, and the broker was asked after the last item
    found = await pace(rival, RivalSettings(str(tmp_path / "tally")), 400, tmp_path / "log", tell)
    assert told[0] >= 400 and found.items_per_s > 0 and found.cpu_per_item >= 0
    assert len(list((tmp_path / "tally").iterdir())) in (1, 2)


async def test_a_rival_that_ends_says_why(tmp_path: Path):
    rival = Rival("broken", (("-c", "raise SystemExit('no such broker')"),), ())
    with pytest.raises(TailraceError, match="broken did not get through: no such broker"):
        await pace(rival, RivalSettings(str(tmp_path / "tally")), 10, tmp_path / "log", _nothing)


async def test_a_rival_that_does_nothing_is_not_waited_for(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(running, "FIRST_WITHIN", 0.05)
    rival = Rival("idle", (("-c", "import time; time.sleep(60)"),), ())
    with pytest.raises(TailraceError, match="idle did not get through"):
        await pace(rival, RivalSettings(str(tmp_path / "tally")), 10, tmp_path / "log", _nothing)


async def _nothing() -> None:
    """Returns nothing: the broker knows."""


def test_the_picture_tells_how_many_times_the_fastest_is_as_fast():
    drawn = compared("a title", "a note", [("tailrace", 900.0), ("<other>", 300.0)])
    assert "300 (1/3.0)" in drawn and "&lt;other&gt;" in drawn and drawn.rstrip().endswith("</svg>")


def test_a_wait_that_dwarfs_all_others_is_cut_off():
    # Given waits of which one is a thousand times as long as the others
    picture = waited("waits", "milliseconds", [("quick", 2.0, 4.0), ("tailrace", 3.0, 8.0), ("slow", 4000.0, 7000.0)])

    # Then the others fill the picture, and the slow one says that it goes on
    assert 'width="360.0"' in picture.partition("tailrace")[2].partition("slow")[0]
    assert "→ 4,000 / 7,000 ms" in picture
    assert "→ 3" not in picture


def test_waits_are_drawn_below_the_rates_when_both_were_measured():
    rates = {"items_per_s": 900.0, "celery_items_per_s": 300.0, "celery_ratio": 3.0}
    waits = {"p50_ms": 4.0, "p99_ms": 12.0, "celery_p50_ms": 2.0, "celery_p99_ms": 40.0}
    options = BenchOptions("rivals", engine="redis")
    both = _rivals_drawn(rates | waits, options)
    assert "300 (1/3.0)" in both and "2 / 40 ms" in both and both.index("300 (1/3.0)") < both.index("2 / 40 ms")
    assert len(ElementTree.fromstring(both).findall("{http://www.w3.org/2000/svg}svg")) == 2
    alone = _rivals_drawn(waits, options)
    assert "items a second" not in alone and alone.index(">celery<") < alone.index(">tailrace<")


class Server:
    """A server that takes all submissions, and acknowledges one item whenever it is asked how many are left."""

    def __init__(self) -> None:
        self.made, self.noops, self.sent = False, 0, [0.0]

    async def ready(self) -> None:
        self.made = True

    async def fill(self, count: int) -> None:
        assert self.made
        self.noops += count

    async def send(self, sent: float) -> None:
        self.sent.append(sent)

    async def left(self) -> int:
        self.noops -= 1
        return self.noops

    def feeder(self) -> RivalFeeder:
        return RivalFeeder(self.fill, self.send, self.left, ready=self.ready)


def test_a_feeder_makes_its_server_ready_submits_and_waits_until_all_is_acknowledged(capsys):
    server = Server()
    feeder_main(server.feeder(), ("fill", "3"))
    assert server.noops == 3
    feeder_main(server.feeder(), ("through",))
    assert server.noops == 0
    feeder_main(server.feeder(), ("pace", "0.05"))
    assert server.sent == sorted(server.sent) and len(server.sent) == 1 + 10
    assert all(float(line) >= 0 for line in capsys.readouterr().out.split())


def test_a_server_that_is_not_told_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(feeding, "TOLD_WITHIN", -1.0)
    server = Server()
    server.noops = 8
    with pytest.raises(SystemExit, match="the server still has 7 that nobody acknowledged"):
        feeder_main(server.feeder(), ("through",))


async def test_what_a_feeder_says_is_shown_when_it_fails(tmp_path: Path):
    rival = Rival("broken", (), (), feeder=("-c", "raise SystemExit('no such server')"))
    with pytest.raises(TailraceError, match="broken: `fill 5` failed: no such server"):
        await feed(rival, RivalSettings(str(tmp_path)), "fill", "5")


async def test_a_feeder_that_hangs_is_ended(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(running, "FIRST_WITHIN", 0.05)
    rival = Rival("idle", (), (), feeder=("-c", "import time; time.sleep(60)"))
    with pytest.raises(TailraceError, match="idle: `through 0` took longer than 0 s"):
        await feed(rival, RivalSettings(str(tmp_path)), "through")


#: Submits to a file at once what is asked for, each started after its number of milliseconds; the first item apart.
PACES = """
import sys
from tailrace.bench.rivals.settings import settings
count = int(200 * float(sys.argv[2]))
with open(settings().starts, "a") as out:
    out.writelines(f"{number / 1000:.6f}\\n" for number in range(count))
print(count / 100)
"""


async def test_waits_leave_out_the_first_item_and_the_first_second(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(running, "SETTLE", 0.0)
    rival = Rival("paced", (("-c", "import time; time.sleep(60)"),), (), feeder=("-c", PACES))
    given = RivalSettings(str(tmp_path), starts=str(tmp_path / "starts"))
    rate, found = await waits(rival, given, 1.0, tmp_path / "log")
    assert rate == 100.0
    assert found == [number / 1000 for number in range(200, 400)]
