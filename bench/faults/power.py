"""Power cuts of the whole platform on its default engine: the scenario `power_cut` on SQLite."""

from __future__ import annotations

import random
import sys
from collections.abc import Sequence
from pathlib import Path

from ..figures import Figures, Progress
from . import plan
from .power_world import PowerWorld
from .run import run

#: Items of each cut, half of them submitted and half in a stream, and seconds between two cuts, least and most.
ITEMS, PAUSE = 300, (0.5, 2.5)
HEARTBEAT = 0.5
#: Laws that have figures of their own: accepted work that never ended; an item that was known to be over and ran again,
#: or a checkpoint that went back.
LOST, AGAIN = ("lost",), ("again", "backwards")


async def power_cut_sqlite(
    folder: Path, cuts: int, progress: Progress, items: int = ITEMS, durability: str = "durable"
) -> Figures:
    """Cuts the power of one platform, fed all the time, so many times: gateway, stores, tailers, delay service,
    scheduler and workers, whose files are all on the disk. `lost_s`: seconds before a cut in which the oldest lost item
    had been put in; `broken`: number of other findings that a run of faults must not show. Findings are written to
    standard error."""
    chance = random.Random(cuts)
    steps = [plan.FaultStep((plan.Breakage("cut", "node"),), round(chance.uniform(*PAUSE), 3)) for _ in range(cuts)]
    world = PowerWorld(folder, HEARTBEAT, durability)
    result = await run(world, plan.items(items * (cuts + 1), cuts), steps, cuts, progress)
    verdict = result.verdict
    for each in verdict.findings[:20]:
        print(f"{each.law} {each.id}: {each.detail}", file=sys.stderr)
    counts = [finding.law for finding in verdict.findings]
    lost = [world.put_in(finding.id) for finding in verdict.findings if finding.law in LOST]
    again = sum(law in AGAIN for law in counts)
    return {
        "cuts": float(cuts),
        "accepted": float(verdict.items),
        "lost": float(len(lost)),
        "lost_s": round(max((before(put, world.cuts) for put in lost), default=0.0), 3),
        "again": float(again),
        "broken": float(len(counts) - len(lost) - again + len(result.failed)),
        "known_as_settled": float(result.more["known_as_settled"]),
        "duplicates": float(verdict.duplicates),
    }


def before(put: float, cuts: Sequence[float]) -> float:
    """Seconds from the moment when an item was put in to the first cut after it; 0 where none came."""
    return min((cut - put for cut in cuts if cut >= put), default=0.0)
