"""The plan of a run over three hosts, from a seed: all that is broken on one machine, and the hosts' wires."""

from __future__ import annotations

from collections.abc import Collection

from . import plan
from .host_wire import HOST_WAYS
from .plan import Breakage, FaultStep

#: The first one has the stores, the others a worker each, and the second one a process of tailers beside that.
HOSTS = ("host-1", "host-2", "host-3")
TAILERS = ("tailers-1", "tailers-2")
#: All that is on a host is killed, and the host is cut off for longer than the longest lease.
LOSE = "lose"
#: Of the parts that are not on the first host, the host of each.
ELSEWHERE = {"worker-1": 2, "tailers-2": 2, "worker-2": 3}
HOST = "host"


def parts_of(host: str) -> list[str]:
    """The parts of a host that is not the first one."""
    return [part for part, number in ELSEWHERE.items() if host == f"host-{number}"]


def families() -> dict[str, list[Breakage]]:
    """Everything that can be broken, by family."""
    found = plan.families()
    found["kill"] += [Breakage("kill", part) for part in TAILERS]
    found["stop"] += [Breakage("stop", part, 1.15) for part in TAILERS]
    found[HOST] = [
        *(Breakage(way, host, length) for host in HOSTS for way in HOST_WAYS for length in (0.3, 1.15)),
        *(Breakage(LOSE, host, 1.15) for host in HOSTS[1:]),
    ]
    return found


def turns(*, server: bool) -> tuple[str, ...]:
    """The families in turns: every second fault is a host's, and where there is a server every fifth one is its."""
    found: list[str] = []
    for number, each in enumerate(plan.TURNS):
        found += [HOST, each, *((plan.SERVER,) if server and number % 2 else ())]
    return tuple(found)


def faults(count: int, seed: int, without: Collection[str] = (), *, server: bool = False) -> list[FaultStep]:
    """So many faults; see `plan.faults`."""
    return plan.dealt(count, seed, families(), turns(server=server), without, ("kill", "stop", "wire", HOST))
