"""Processors and memory that a worker may use: by its affinity, and by quotas of control groups of both versions."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.runtime import machine
from tailrace.runtime.rules.processors import PER_EXECUTOR, bound, executors, folders, groups, memory, processors, quota

GIB = 1 << 30


@pytest.mark.parametrize(
    ("text", "expected"),
    [("max 100000", None), ("150000 100000", 1.5), ("-1 100000", None), ("50000 100000", 0.5), ("", None), ("7", None)],
)
def test_a_quota_is_read(text: str, expected: float | None) -> None:
    assert quota(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"), [("max", None), ("536870912", GIB // 2), ("9223372036854771712", None), ("", None)]
)
def test_a_bound_of_memory_is_read(text: str, expected: int | None) -> None:
    assert bound(text) == expected


def test_groups_are_read_and_all_above_them_count() -> None:
    assert groups("4:cpu,cpuacct:/a/b\n1:name=systemd:/\n0::/c") == [
        ("cpu", "/a/b"),
        ("cpuacct", "/a/b"),
        ("name=systemd", "/"),
        ("", "/c"),
    ]
    assert groups("nonsense\n") == []
    assert folders("/a/b") == ["a/b", "a", ""]
    assert folders("/../../c") == ["c", ""]  # as a container sees the path of its host


def test_a_part_of_a_processor_counts_as_one() -> None:
    assert processors(16, [None, 0.5]) == 1
    assert processors(16, [1.5, 4.0]) == 2
    assert processors(16, [2.0]) == 2
    assert processors(1, [8.0]) == 1


@given(affinity=st.integers(1, 512), quotas=st.lists(st.none() | st.floats(0.001, 512), max_size=4))
def test_there_is_always_one_and_never_more_than_any_bound_rounded_up(
    affinity: int, quotas: list[float | None]
) -> None:
    found = processors(affinity, quotas)
    assert 1 <= found <= affinity
    assert all(each is None or found < each + 1 for each in quotas)


def test_executors_have_memory_each() -> None:
    assert memory(16 * GIB, [None, GIB // 2]) == GIB // 2
    assert memory(0, []) == 0
    assert executors(16, GIB // 2) == GIB // 2 // PER_EXECUTOR
    assert executors(2, 64 << 20) == 1
    assert executors(16, 0) == 16


@pytest.mark.parametrize("version", ["2", "2 in a container", "1"])
def test_files_of_the_kernel_are_read(tmp_path: Path, version: str) -> None:
    # Given a group whose parent has a quota of one processor and a half, and 200 MiB
    files = {
        "2": {
            "proc/self/cgroup": "0::/pod/worker\n",
            "sys/fs/cgroup/pod/cpu.max": "150000 100000\n",
            "sys/fs/cgroup/pod/worker/cpu.max": "max 100000\n",
            "sys/fs/cgroup/pod/memory.max": "209715200\n",
        },
        "2 in a container": {
            "proc/self/cgroup": "0::/\n",
            "sys/fs/cgroup/cpu.max": "150000 100000\n",
            "sys/fs/cgroup/memory.max": "209715200\n",
        },
        "1": {
            "proc/self/cgroup": "9:memory:/pod/worker\n4:cpu,cpuacct:/pod/worker\n",
            "sys/fs/cgroup/cpu,cpuacct/pod/cpu.cfs_quota_us": "150000\n",
            "sys/fs/cgroup/cpu,cpuacct/pod/cpu.cfs_period_us": "100000\n",
            "sys/fs/cgroup/memory/pod/worker/memory.limit_in_bytes": "9223372036854771712\n",
            "sys/fs/cgroup/memory/pod/memory.limit_in_bytes": "209715200\n",
        },
    }[version]
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    # Then that is what a process in it may use, on a machine that has more
    assert machine.usable_processors(tmp_path) == min(2, machine.usable_processors(tmp_path / "nothing"))
    assert machine.usable_memory(tmp_path) == 200 << 20
