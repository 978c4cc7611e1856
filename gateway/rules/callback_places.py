"""The places of callbacks: THE rule of which requests may be out at once. A receiver that is silent, and a tenant with
many callbacks, leave others theirs."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

#: Requests that may be out at once, of these to one host, and of these of one tenant (those of no tenant have all).
MOST, OF_A_HOST, OF_A_TENANT = 16, 8, 8
#: Requests in a row that a host did not answer, after which it is asked one at a time (a circuit breaker).
SILENT_AFTER = 3
#: Seconds until a silent host is asked again, at first and at most; each further silence doubles them.
FIRST_PAUSE, LONGEST_PAUSE = 5.0, 300.0
#: Seconds until an item is looked at again that found no place.
LOOK_AGAIN = 1.0
#: Silent hosts that are remembered.
REMEMBERED = 1000


@dataclass(slots=True)
class _Silence:
    """The requests in a row that a host did not answer, and when it is asked again."""

    failures: int = 0
    again: float = 0.0


class Places:
    """The requests of one gateway. Invariant: each host and tenant that is counted has a request out."""

    def __init__(self) -> None:
        self._hosts: Counter[str] = Counter()
        self._tenants: Counter[str] = Counter()
        self._silent: dict[str, _Silence] = {}

    def take(self, host: str, tenant: str, now: float) -> float:
        """Takes a place for a request, and returns 0; seconds to wait when there is none."""
        silence = self._silent.get(host)
        if silence is not None and silence.failures >= SILENT_AFTER:
            if now < silence.again:
                return silence.again - now
            if self._hosts[host]:
                return LOOK_AGAIN
        if self._hosts[host] >= OF_A_HOST or (tenant and self._tenants[tenant] >= OF_A_TENANT):
            return LOOK_AGAIN
        self._hosts[host] += 1
        self._tenants[tenant] += 1
        return 0.0

    def leave(self, host: str, tenant: str, now: float, *, answered: bool) -> None:
        """Gives a place back. `answered`: the host did, whatever it said."""
        for counts, name in ((self._hosts, host), (self._tenants, tenant)):
            counts[name] -= 1
            if not counts[name]:
                del counts[name]
        silence = self._silent.pop(host, _Silence())
        if answered:
            return
        silence.failures += 1
        further = max(0, silence.failures - SILENT_AFTER)
        silence.again = now + min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** min(further, 10))
        self._silent[host] = silence
        if len(self._silent) > REMEMBERED:
            del self._silent[next(iter(self._silent))]
