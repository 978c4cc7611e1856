"""Records of tailers' messages in a world are kept, and compared with those of another version."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tailrace.model.errors import UserError
from tailrace.testing.simulation.comparing import compared, read
from tailrace.testing.simulation.recording import WorldRecord, difference
from tailrace.testing.simulation.run import SimulateOptions, main, simulate


def record(count: int = 2, digest: str = "a", fate: str = "ok") -> WorldRecord:
    return WorldRecord(7, {"tailer1 does state.commit": (count, digest)}, {"orders/0/1": ["retry", fate]})


@pytest.mark.parametrize(
    ("after", "how", "where"),
    [
        (record(), "same", ""),
        (record(digest="b"), "alike", "tailer1 does state.commit: 2 messages, others now"),
        (record(3, "b"), "fates", "tailer1 does state.commit: 2 messages, 3 now"),
        (record(3, "b", "lost"), "differ", "orders/0/1: retry, ok; now: retry, lost"),
    ],
)
def test_two_versions_are_alike_in_one_of_three_ways_or_not(after: WorldRecord, how: str, where: str) -> None:
    assert difference(record(), after) == (how, where)
    found = compared([record()], [after])
    assert (found.counts[how], found.differ, found.missing) == (1, how == "differ", 0)
    assert where in found.text()


def test_the_same_version_is_the_same_in_any_process_and_a_mistake_is_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Given what was recorded of some worlds
    before = tmp_path / "before.jsonl"
    assert main(SimulateOptions(seeds=2, jobs=2, record=before)) == 0
    assert [each.seed for each in read(before)] == [0, 1]
    # When the same version is run again, then nothing differs, and a world that was not recorded is named
    capsys.readouterr()
    assert main(SimulateOptions(seeds=3, jobs=1, against=before)) == 0
    said = capsys.readouterr().out
    assert "2 the same in every message" in said
    assert "1 more that the earlier run did not record" in said
    # When another one is, whose tailers pass what has not ended, then what they did differs
    mistaken = SimulateOptions(seeds=1, jobs=1, bug="frontier is off by one", shrink=False, against=before)
    [other] = asyncio.run(simulate(mistaken, lambda done, total, wrong: None))
    assert other.record is not None
    assert difference(read(before)[0], other.record)[0] != "same"


@pytest.mark.parametrize("text", [None, "no record"])
def test_a_file_that_is_no_record_is_named(tmp_path: Path, text: str | None) -> None:
    file = tmp_path / "before.jsonl"
    if text is not None:
        file.write_text(text)
    with pytest.raises(UserError, match=r"before\.jsonl: .*; expected a file that `tailrace simulate --record` wrote"):
        read(file)


def test_a_file_that_cannot_be_written_is_named_before_anything_is_told(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="--record needs a file that can be written"):
        main(SimulateOptions(seeds=1, record=tmp_path))
