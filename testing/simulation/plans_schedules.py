"""Schedules in some worlds: work that runs by the clock, beside the items that are brought."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from .plan import Deed, Plan, Timed

#: The share of worlds that have schedules, and how many of them.
SCHEDULED = 0.15
SCHEDULES = (1, 3)
#: True seconds for which one goes on; what it runs takes little of a story's patience.
LASTS = (15.0, 40.0)
#: Seconds between two instants of one; those of cron divide a minute.
EVERY = (1.5, 12.0)
CRONS = (2, 3, 5, 10)
#: Seconds that a run may be late before it counts as missed.
GRACES = (1.0, 3.0, 10.0, 60.0)


def scheduled(plan: Plan) -> Plan:
    """The plan, perhaps with schedules, as its seed has it."""
    random = Random(f"schedules of {plan.seed}")
    if random.random() >= SCHEDULED:
        return plan
    first = max((item.n for item in plan.items), default=0) + 1
    count = random.randint(*SCHEDULES)
    return replace(plan, schedules=tuple(_timed(random, first + number) for number in range(count)))


def _timed(random: Random, n: int) -> Timed:
    at = round(random.uniform(0.5, 10.0), 3)
    starts = round(at + random.uniform(-5.0, 5.0), 3)
    overlap = random.choice(("skip", "queue", "allow"))
    by_cron = random.random() < 0.3
    return Timed(
        n,
        at,
        starts,
        round(starts + random.uniform(*LASTS), 3),
        every=0.0 if by_cron else round(random.uniform(*EVERY), 3),
        cron=f"*/{random.choice(CRONS)} * * * * *" if by_cron else "",
        overlap=overlap,
        catch_up=random.choice(("skip", "latest") if overlap == "skip" else ("skip", "latest", "all")),
        catch_up_max=random.randint(1, 5),
        grace=random.choice(GRACES),
        max_runs=random.choice((0, 0, random.randint(1, 8))),
        deeds=tuple(_deed(random) for _ in range(random.choice((0, 1, 1, 2)))),
    )


def _deed(random: Random) -> Deed:
    kind = random.choice(("ok", "ok", "raise", "throttled", "crash"))
    return Deed(kind, round(random.choice((0.05, 0.5, 4.0)) * random.uniform(0.5, 2.0), 3))
