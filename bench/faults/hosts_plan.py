"""The plan of a run over three hosts, from a seed: the faults of one machine, and breaks of the hosts' wires."""

from __future__ import annotations

from collections.abc import Collection

from . import plan
from .host_wire import HOST_WAYS
from .plan import Breakage, FaultStep

#: The first one has the stores, the others a worker each, and the second one a process of tailers beside that.
HOSTS = ("host-1", "host-2", "host-3")
TAILERS = ("tailers-1", "tailers-2")
#: Everything on a host is killed, and the host is cut off for longer than the longest lease.
LOSE = "lose"
#: The host of each part that is not on the first one.
ELSEWHERE = {"worker-1": 2, "tailers-2": 2, "worker-2": 3}
HOST = "host"


def parts_of(host: str) -> list[str]:
    """The parts of a host that is not the first one."""
    return [part for part, number in ELSEWHERE.items() if host == f"host-{number}"]


def families() -> dict[str, list[Breakage]]:
    """Everything that can be broken, by family."""
    found = plan.families()
    del found[plan.STRANGER]  # between hosts they do not come past TLS
    found["kill"] += [Breakage("kill", part) for part in TAILERS]
    found["stop"] += [Breakage("stop", part, 1.15) for part in TAILERS]
    found[HOST] = [
        *(Breakage(way, host, length) for host in HOSTS for way in HOST_WAYS for length in (0.3, 1.15)),
        *(Breakage(LOSE, host, 1.15) for host in HOSTS[1:]),
    ]
    return found


def turns(*, server: bool) -> tuple[str, ...]:
    """The order of families: every second fault is a host's, and where there is a server every fifth one is its."""
    found: list[str] = []
    for number, each in enumerate(each for each in plan.TURNS if each != plan.STRANGER):
        found += [HOST, each, *((plan.SERVER,) if server and number % 2 else ())]
    return tuple(found)


def faults(count: int, seed: int, without: Collection[str] = (), *, server: bool = False) -> list[FaultStep]:
    """A plan of so many faults; see `plan.faults`."""
    return plan.dealt(count, seed, families(), turns(server=server), without, ("kill", "stop", "wire", HOST))
