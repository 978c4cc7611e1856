"""Worlds with schedules: each made for a mistake of bugs/schedules.py, or for none."""

from __future__ import annotations

from typing import Any

from .plan import Deed, Fault, Plan, Timed


def _world(timed: Timed, *faults: Fault, **options: Any) -> Plan:
    """A world with one schedule and nothing else."""
    known: dict[str, Any] = {"calm": 50.0, "slots": 16}
    return Plan(1, (), faults, schedules=(timed,), **(known | options))


#: Calls that arrive twice, while two tailers stand by for one another.
REPEATED = _world(
    Timed(0, 1.0, 2.0, 30.0, every=2.0, overlap="allow"),
    Fault(0.9, "weather", what="repeat", amount=0.5, seconds=25.0),
    Fault(10.0, "freeze", "tailer1", seconds=12.0),
    Fault(24.0, "kill", "tailer2", seconds=1.0),
    apart=True,
    patience=60.0,
)

#: Nobody fires for a while: what is older than the grace is passed over, all of it or all but the newest.
AWAY = [
    _world(
        Timed(0, 1.0, 2.0, 40.0, every=2.0, overlap="queue", catch_up=catch_up, catch_up_max=3, grace=4.0),
        Fault(6.0, "kill", "node", seconds=20.0),
    )
    for catch_up in ("skip", "latest", "all")
]

#: Each run takes as long as two of its pauses.
SLOW = {
    overlap: _world(Timed(0, 1.0, 2.0, 14.0, every=2.0, overlap=overlap, grace=60.0, deeds=(Deed("ok", 4.0),)))
    for overlap in ("skip", "queue", "allow")
}

SCENARIOS: dict[str, list[Plan]] = {
    "a firing compares what was decided by then": [REPEATED],
    "all that was missed is run": AWAY,
    "a run fires before its instant": [SLOW["allow"]],
    "a run that is to wait is skipped": [SLOW["queue"]],
    "a run that is to be skipped goes beside the other": [SLOW["skip"]],
}
