"""The platform under limits, and the faults through which they must hold."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping, Sequence
from typing import Any

from ...model.limits import Quota, QuotaChange
from ...stores.remote import RemoteControl
from .journal import Line
from .limits_kept import seen_of_limits
from .path import QUEUE
from .plan import Breakage, FaultStep, FedItem
from .verdict import Expected, Finding
from .world import FaultWorld

#: A limit of a function, with a rate; of a tenant; and of a downstream that another function calls.
QUOTAS = (
    Quota("work", concurrency=6, rate=15.0, burst=4.0),
    Quota(tenant="busy", concurrency=4),
    Quota("threaded", downstreams=("shop",)),
    Quota(downstream="shop", concurrency=2),
)
_BROKEN = (
    ("kill", "scheduler", 0.0),
    ("stop", "worker-2", 1.15),
    ("kill", "node", 0.0),
    ("stop", "scheduler", 1.15),
    ("kill", "worker-1", 0.0),
    ("stop", "node", 1.15),
    ("term", "scheduler", 0.0),
    ("kill", "tailers", 0.0),
)


def limited_items(count: int, seed: int) -> list[FedItem]:
    """Items for the queue, `count` of them, a third of each of three tenants."""
    chance = random.Random(f"limited {seed}")
    return [
        FedItem(
            QUEUE,
            chance.choice(("work", "work", "threaded")),
            {"seconds": round(chance.uniform(0.1, 0.4), 3)},
            tenant=chance.choice(("busy", "calm", "other")),
        )
        for _ in range(count)
    ]


def limited_faults() -> list[FaultStep]:
    """Steps in which scheduler, workers and the node are killed, frozen and told to end."""
    return [FaultStep((Breakage(*each),), 0.5) for each in _BROKEN]


class LimitsWorld(FaultWorld):
    """A world in which QUOTAS are in force from its start."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.schedulers: list[float] = []  # when one was told to end, and when the next one was there

    async def start(self) -> None:
        await super().start()
        control = RemoteControl(self.ports["store"])
        try:
            [known, *_] = await control.quota_changes() or [QuotaChange(0, "", "", 0.0)]
            change = QuotaChange(0, "bench", "limits", time.time(), QUOTAS)
            assert await control.put_quotas(change, known.version), "somebody else set quotas"
        finally:
            await control.close()

    async def up_again(self, part: str, deaths: int) -> None:
        told = time.monotonic()
        await super().up_again(part, deaths)
        if part == "scheduler":
            self.schedulers += [told, time.monotonic()]

    def judged(self, lines: Sequence[Line], expected: Mapping[str, Expected]) -> tuple[list[Finding], dict[str, Any]]:
        """Findings where a limit was exceeded, and figures of how near each one was."""
        seen, found = seen_of_limits(lines, expected, QUOTAS, self.schedulers)
        return found, {f"most_at_once_{each.name}": each.most for each in seen} | {
            f"most_of_burst_{each.name}": each.burst for each in seen if each.burst
        }
