"""Recordings, how they are read, and how they fare under quotas in virtual time."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.assembly.what_if import compare, show_comparison
from tailrace.model.errors import InvalidRequest
from tailrace.model.function_spec import FunctionSpec
from tailrace.model.limits import Quota
from tailrace.model.outcome import Outcome
from tailrace.model.unit_rate import UnitRate
from tailrace.model.workload import Kind
from tailrace.scheduler.recorder import MOST_KINDS, TICK, Recorder
from tailrace.scheduler.recording import RecordedPool, Recording, RecordingFile, read_recording
from tailrace.scheduler.what_if import played

from .test_usage import Place


def recorded(seconds: int, each_second: dict[Kind, int], run: float = 0.1, places: int = 1000) -> Recording:
    """A recording of so many items of each kind at the beginning of each second."""
    kinds = list(each_second)
    found = Recording(TICK, False, kinds, seconds=float(seconds))
    for second in range(seconds):
        found.arrivals[round(second / TICK)] = [(kinds.index(kind), count) for kind, count in each_second.items()]
    found.runs = {number: [(1, run)] for number in range(len(kinds))}
    found.pools = [RecordedPool("w", "p", tuple({kind.function for kind in kinds}), places)]
    found.items = seconds * sum(each_second.values())
    return found


A, B = Kind("f", tenant="a"), Kind("f", tenant="b")


# ---- playing


def test_where_there_is_room_for_all_nothing_waits() -> None:
    result = played(recorded(10, {A: 20, B: 5}), [], [])
    a = result.by["f", "a"]
    assert (a.arrived, a.ended, a.delay(0.5, TICK), a.delay(0.99, TICK)) == (200, 200, 0.0, 0.0)
    assert a.ticks * TICK == pytest.approx(20.0)
    assert result.used == pytest.approx(25 * 10 * 0.1 / (1000 * 10), rel=0.1)


def test_a_rate_below_what_arrives_makes_who_pays_it_wait_and_nobody_else() -> None:
    limited = [Quota(tenant="a", rate=10.0, burst=10.0)]
    result = played(recorded(10, {A: 20, B: 5}), limited, [])
    a, b = result.by["f", "a"], result.by["f", "b"]
    assert a.ended == 200 and a.last_end == pytest.approx(19.1, abs=0.5)
    assert a.limited == a.waited > 0
    assert (b.delay(0.99, TICK), b.waited) == (0.0, 0.0)


def test_a_concurrency_is_held_at_each_moment() -> None:
    result = played(recorded(5, {A: 10}, run=0.5), [Quota("f", concurrency=2)], [])
    assert result.by["f", "a"].last_end == pytest.approx(50 * 0.5 / 2, abs=0.5)


def test_what_waits_for_a_slot_is_behind_no_limit() -> None:
    result = played(recorded(5, {A: 10}, run=0.5, places=2), [], [])
    a = result.by["f", "a"]
    assert a.waited > 0 == a.limited
    assert result.used == pytest.approx(1.0, abs=0.05)


def test_what_never_drains_is_said_to_be_left() -> None:
    result = played(recorded(2, {A: 1000}), [Quota("f", rate=0.5, burst=1.0)], [])
    a = result.by["f", "a"]
    assert 0 < a.ended < 2000 == a.arrived


def test_a_rate_in_a_unit_counts_what_runs_were_recorded_to_use() -> None:
    # Given items that used thirty tokens each, two hundred of them in ten seconds
    recording = recorded(10, {A: 20, B: 5})
    recording.units = {0: {("openai", "tokens"): [(1, 30.0)]}}
    quotas = [Quota("f", downstreams=("openai",))]
    quotas.append(Quota(downstream="openai", units=(UnitRate("tokens", 300.0, 300.0),)))
    result = played(recording, quotas, [])
    # Then they take as long as that many tokens do: those of whom nothing is recorded are taken for the average
    a = result.by["f", "a"]
    assert a.ended == 200
    assert a.last_end == pytest.approx(250 * 30 / 300, rel=0.2)
    assert a.limited > 0
    # And without a recorded use each is taken for one
    recording.units = {}
    assert played(recording, quotas, []).by["f", "a"].last_end < 10.0


def test_what_runs_used_is_recorded_and_read_back(tmp_path: Path) -> None:
    place = Place()
    recorder = Recorder("s", place.now, place.wall)
    place.core.returns.recorders.append(recorder)
    refs = place.push(Kind("g", tenant="a"), Kind("g", tenant="a"), Kind("f"))
    place.now += 0.5
    place.spend({refs[0]: (("", "bytes", 7.0),), refs[1]: (("smtp", "bytes", 5.0),), refs[2]: (("", "rows", 1.0),)})
    found = read_recording(written(tmp_path / "r", lines_of(place, recorder)))
    g, f = found.kinds.index(Kind("g", tenant="a")), found.kinds.index(Kind("f"))
    assert found.units == {g: {("smtp", "bytes"): [(2, 6.0)]}, f: {("", "rows"): [(1, 1.0)]}}


@pytest.mark.parametrize(
    "row", [[9, "", "tokens", 1, 5], [0, "", "tokens", 0, 5], [0, "tokens"], [0, "", "t", 1, None], 7]
)
def test_a_frame_with_strange_units_ends_what_is_read(tmp_path: Path, row: object) -> None:
    place = Place()
    recorder = Recorder("s", place.now, place.wall)
    place.core.returns.recorders.append(recorder)
    place.push(Kind("f"))
    lines = [*lines_of(place, recorder), json.dumps({"at": 2.0, "units": [row]}).encode()]
    assert read_recording(written(tmp_path / "r", lines)).cut


def test_a_limit_of_a_downstream_counts_for_who_calls_it() -> None:
    quotas = [Quota(downstream="smtp", concurrency=1)]
    result = played(recorded(5, {A: 10}), quotas, [FunctionSpec("f", downstreams=("smtp",))])
    assert result.by["f", "a"].delay(0.99, TICK) > 0.5


def test_one_that_is_throttled_keeps_no_place_that_others_need() -> None:
    """No matter how much of it waits."""
    result = played(recorded(5, {A: 5000, B: 5}), [Quota(tenant="a", rate=10.0)], [])
    assert result.by["f", "b"].delay(0.99, TICK) <= 0.1


@settings(deadline=None, max_examples=15)
@given(
    counts=st.lists(st.integers(0, 30), min_size=1, max_size=4),
    concurrency=st.integers(0, 3),
    rate=st.sampled_from([0.0, 5.0, 50.0]),
    places=st.integers(1, 5),
)
def test_nothing_is_played_twice_or_lost(counts: list[int], concurrency: int, rate: float, places: int) -> None:
    kinds = {Kind("f", priority=number % 4, tenant=f"t{number}"): count for number, count in enumerate(counts)}
    recording = recorded(3, kinds, places=places)
    result = played(recording, [Quota("f", concurrency=concurrency, rate=rate)], [])
    assert sum(each.arrived for each in result.by.values()) == recording.items
    assert sum(each.ended for each in result.by.values()) == recording.items
    assert sum(each.delays.total() for each in result.by.values()) == recording.items
    assert result.used <= 1.0001


def test_before_and_after_are_told_as_plain_data(capsys: pytest.CaptureFixture[str]) -> None:
    found = compare(recorded(5, {A: 20, B: 5}), [], [Quota(tenant="a", rate=10.0, burst=1.0)], [])
    json.dumps(found)
    a, b = found["traffic"]
    assert (a["tenant"], a["items"], a["before"]["limited"], a["after"]["limited"]) == ("a", 100, 0.0, 1.0)
    assert b["before"] == b["after"]
    show_comparison(found, 1)
    text = capsys.readouterr().out
    assert "100 items" not in text and "125 items in 5 s, on 1000 slots" in text
    assert "0% → 100%" in text and "and 1 more" in text


# ---- recording


def lines_of(place: Place, recorder: Recorder) -> list[bytes]:
    return [recorder.header, recorder.frame(place.core.workers.values(), place.now)]


def written(path: Path, lines: list[bytes]) -> Path:
    file = RecordingFile(path)
    file.add(lines)
    file.close()
    return path


def test_what_came_and_ended_is_read_back(tmp_path: Path) -> None:
    place = Place()
    recorder = Recorder("s", place.now, place.wall)
    place.core.returns.recorders.append(recorder)
    refs = place.push(Kind("f", 1, "c", "a"), Kind("f", 1, "c", "a"), Kind("g", tenant="b"))
    place.now += 2
    place.end(*refs)
    found = read_recording(written(tmp_path / "r", lines_of(place, recorder)))
    assert found.kinds == [Kind("f", 1, "c", "a"), Kind("g", tenant="b")]
    assert found.arrivals == {0: [(0, 2), (1, 1)]}
    assert found.runs == {0: [(2, 2.0)], 1: [(1, 2.0)]}
    assert found.pools == [RecordedPool("w", "p", ("f", "g"), 10_000)]
    assert (found.items, found.seconds, found.cut, found.lost) == (3, 2.0, "", 0)
    assert place.worker.open == {}


def test_what_was_handed_back_and_comes_again_arrived_once(tmp_path: Path) -> None:
    place = Place()
    recorder = Recorder("s", place.now, place.wall)
    recorder.arrived([A, A, A], place.now)
    recorder.went_back([A, A])
    first = recorder.frame(place.core.workers.values(), place.now + 1)
    recorder.arrived([A, A, A], place.now + 1.5)
    second = recorder.frame(place.core.workers.values(), place.now + 2)
    found = read_recording(written(tmp_path / "r", [recorder.header, first, second]))
    assert found.arrivals == {0: [(0, 3)], 75: [(0, 1)]}


def test_hashed_tenants_are_told_apart_and_not_told() -> None:
    place = Place()
    recorder = Recorder("s", place.now, place.wall, salt="pepper")
    recorder.arrived([A, B, Kind("f")], place.now)
    frame = json.loads(recorder.frame((), place.now))
    tenants = [tenant for _, _, _, tenant in frame["kinds"]]
    assert len(set(tenants)) == 3 and not {"a", "b"} & set(tenants) and "" in tenants
    other = Recorder("s", place.now, place.wall, salt="salt")
    other.arrived([A], place.now)
    assert json.loads(other.frame((), place.now))["kinds"][0][3] not in tenants


def test_what_is_too_much_is_counted_and_left_out() -> None:
    recorder = Recorder("s", 0.0, 0.0)
    for first in range(0, MOST_KINDS + 1000, 1000):
        recorder.arrived([Kind("f", tenant=f"t{number}") for number in range(first, first + 1000)], 0.0)
    frame = json.loads(recorder.frame((), 1.0))
    assert (len(frame["kinds"]), frame["lost"]) == (MOST_KINDS, 1000)


def test_a_truncated_tail_is_read_up_to_there_and_said(tmp_path: Path) -> None:
    place = Place()
    recorder = Recorder("s", place.now, place.wall)
    place.core.returns.recorders.append(recorder)
    place.push(A)
    path = tmp_path / "r"
    file = RecordingFile(path)
    file.add(lines_of(place, recorder))
    size = path.stat().st_size
    for _ in range(5):
        place.now += 1
        place.push(*[B] * 50)
        file.add([recorder.frame(place.core.workers.values(), place.now)])
    # When it is cut anywhere behind its first frame
    whole = path.read_bytes()
    for end in (size, size + 1, size + (len(whole) - size) // 2, len(whole)):
        path.write_bytes(whole[:end])
        found = read_recording(path)
        assert found.items >= 1
        assert "read up to" in found.cut
    file.close()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "it is empty"),
        (b"hello", "no gzip file"),
        (gzip.compress(b"hello\n"), "no JSON"),
        (gzip.compress(b"{}\n"), "not a recording"),
        (gzip.compress(b'{"tailrace_recording": 2, "tick": 0.02}\n'), "version 2"),
        (gzip.compress(b'{"tailrace_recording": 1, "tick": 0.02}\n{"at": 9}\n'), "nothing arrived in its 9 s"),
        (
            gzip.compress(
                b'{"tailrace_recording": 1, "tick": 0.02}\n{"at": 9, "kinds": [["f", 1, "", ""]], "in": [[0, 0, 1]]}\n'
            ),
            "no worker was attached",
        ),
    ],
    ids=["empty", "no gzip", "no JSON", "no recording", "another version", "nothing in it", "no worker"],
)
def test_what_is_no_recording_is_refused_with_what_to_do(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "r"
    path.write_bytes(content)
    with pytest.raises(InvalidRequest, match=said) as refused:
        read_recording(path)
    assert "record anew" in str(refused.value) and str(path) in str(refused.value)


@pytest.mark.parametrize("frame", [{"at": 1, "in": [[0, 7, 1]]}, {"at": "x"}, {"in": []}, {"at": 1, "out": [[0]]}, []])
def test_a_bad_frame_ends_what_is_read(tmp_path: Path, frame: object) -> None:
    place = Place()
    recorder = Recorder("s", place.now, place.wall)
    recorder.arrived([A], place.now)
    lines = [*lines_of(place, recorder), json.dumps(frame).encode()]
    path = tmp_path / "r"
    path.write_bytes(gzip.compress(b"".join(line + b"\n" for line in lines)))
    found = read_recording(path)
    assert found.items == 1 and found.cut


def test_a_file_that_is_there_is_not_written_over(tmp_path: Path) -> None:
    path = tmp_path / "r"
    path.write_text("mine")
    with pytest.raises(InvalidRequest, match="name a new file"):
        RecordingFile(path)
    assert path.read_text() == "mine"


def test_held_items_are_told_as_such() -> None:
    place = Place()
    recorder = Recorder("s", place.now, place.wall)
    place.core.returns.recorders.append(recorder)
    place.core.draining = True
    place.push(A)
    assert json.loads(recorder.frame((), place.now)).get("in") is None
    assert all(end.outcome == Outcome.HELD for end in place.tailer.ended.values())
