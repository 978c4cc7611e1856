"""Reads what this process may use of its machine. The rule is in rules/processors.py."""

from __future__ import annotations

import contextlib
import functools
import os
from pathlib import Path

from .rules import processors as rule

ROOT = Path("/")


@functools.cache
def usable_processors(root: Path = ROOT) -> int:
    """Processors that this process may keep busy."""
    quotas = [rule.quota(text) for text in _of_groups(root, "cpu", ("cpu.max",))]
    quotas += [rule.quota(text) for text in _of_groups(root, "cpu", ("cpu.cfs_quota_us", "cpu.cfs_period_us"))]
    return rule.processors(_affinity(), quotas)


@functools.cache
def usable_memory(root: Path = ROOT) -> int:
    """Bytes of memory that this process may use with all others of its container; 0: not known."""
    bounds = [rule.bound(text) for text in _of_groups(root, "memory", ("memory.max",))]
    bounds += [rule.bound(text) for text in _of_groups(root, "memory", ("memory.limit_in_bytes",))]
    return rule.memory(_machine_memory(), bounds)


def usual_executors() -> int:
    """Executors of a pool, where the configuration does not say."""
    return rule.executors(usable_processors(), usable_memory())


def _of_groups(root: Path, controller: str, names: tuple[str, ...]) -> list[str]:
    """The contents of these files of each group that this process is in, beside each other; groups without them are
    left out. Inside of a container the path may be the host's, and only the root is there."""
    found = []
    for of, path in rule.groups(_read(root / "proc/self/cgroup")):
        if of not in ("", controller):
            continue
        for folder in rule.folders(path):
            for mounted in ("", of, "cpu,cpuacct") if of else ("", "unified"):
                texts = [_read(root / "sys/fs/cgroup" / mounted / folder / name) for name in names]
                if all(texts):
                    found.append(" ".join(texts))
    return found


def _read(file: Path) -> str:
    with contextlib.suppress(OSError, ValueError):
        return file.read_text().strip()
    return ""


def _affinity() -> int:
    try:
        return len(os.sched_getaffinity(0)) or 1
    except (AttributeError, OSError):  # not on this system
        return os.cpu_count() or 1


def _machine_memory() -> int:
    try:
        return max(0, os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, OSError, ValueError):
        return 0
