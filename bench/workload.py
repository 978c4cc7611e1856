"""The items that scenarios put into sources: many functions, many tenants, small payloads, always the same."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

from ..model.priority import DEFAULT_PRIORITY
from ..model.workload import Kind
from ..stores.log.log import Record
from ..stores.queue.queue import NewItem
from .functions import FUNCTIONS

TENANTS = 50
#: JSON of an empty argument list, padded by blanks to 200 bytes, the weight of a small event.
PAYLOAD = b"{" + b" " * 198 + b"}"
STREAM = "bench"

TAILER = f"""\
name: bench
source: {{kind: log, stream: {STREAM}}}
function: {{header: function}}
tenant: {{header: tenant}}
priority: user_visible
"""

START_TAILER = """\
name: starts
source: {kind: log, stream: starts}
function: bench_start
priority: interactive
"""


def records(count: int, seed: int = 1, functions: int = FUNCTIONS, tenants: int = TENANTS) -> Iterator[list[Record]]:
    """Yields records of so many functions × tenants (200 × 50) in random order, in batches of 256."""
    pick = random.Random(seed)
    headers = [
        (("function", f"noop_{function:03}"), ("tenant", f"tenant-{tenant:02}"))
        for function in range(functions)
        for tenant in range(tenants)
    ]
    for first in range(0, count, 256):
        yield [Record(PAYLOAD, "", pick.choice(headers)) for _ in range(min(256, count - first))]


def items(
    count: int, functions: int, seed: int = 1, size: int = 256, tenants: int = TENANTS
) -> Iterator[list[NewItem]]:
    """Yields queue items of so many functions × tenants in random order, in batches of `size`."""
    pick = random.Random(seed)
    kinds = [
        Kind(f"noop_{function:03}", int(DEFAULT_PRIORITY), "", f"tenant-{tenant:02}")
        for function in range(functions)
        for tenant in range(tenants)
    ]
    for first in range(0, count, size):
        yield [NewItem(kind, PAYLOAD) for kind in pick.choices(kinds, k=min(size, count - first))]


def write_tailer(folder: Path, text: str = TAILER) -> Path:
    """Writes the tailer file of a scenario."""
    path = folder / "bench-tailer.yaml"
    path.write_text(text)
    return path
