"""The spool (store and forward): where a submission goes while the queue's store fails, and when the store is asked
again: THE rule, as one table.

    state      meaning                                    a submission goes                        the drain looks
    CLEAR      nothing is spooled                         to the store; to the spool if it fails   never
    FILLING    something is spooled, the store is away    to the spool                             after a pause
    DRAINING   something is spooled, the store answers    to the store; an ordered one to the      at once
                                                          spool, behind the others

    While something is on its way into the spool, an ordered submission goes there too, whatever the state: behind it.

    event      the store failed → FILLING (CLEAR while nothing is spooled: then each submission asks it)
               the store answered → DRAINING, or CLEAR when that was the last; something was spooled → FILLING

A submission whose write to the store was not answered may be there: it may be spooled only under tokens by which the
queue recognises it, else it is refused (its client chose to send no tokens).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum

from ...model.backoff import SPOOL, doubled
from ...model.errors import Overloaded
from ...model.jitter import jittered
from ...model.shared_room import SharedRoom

#: Seconds that a client is told to wait when the spool is full: the store has to come back first.
FULL_WAIT = 5.0
BACK = "try again when the store is back"
#: The room of the spool, as tenants share it: workloads, and payload bytes.
ITEMS = SharedRoom("workloads that are spooled while the store is away (`spool_items`)", BACK, FULL_WAIT)
BYTES = SharedRoom("bytes that are spooled while the store is away (`spool_bytes`)", BACK, FULL_WAIT)

#: Workloads, and their payload bytes; and such by tenant.
Load = tuple[int, int]
Loads = Mapping[str, Load]


class SpoolState(Enum):
    """States of a gateway's way to its store."""

    CLEAR = "clear"
    FILLING = "filling"
    DRAINING = "draining"


class SubmissionWay(Enum):
    """The first place that a submission goes to."""

    STORE = "store"
    SPOOL = "spool"


class SpoolRule:
    """The gateway's knowledge of its store and its spool.

    most_items, most_bytes  bounds of the spool; 0 items: there is no spool
    Invariants: `items` and `size` count the workloads that are durably spooled and not yet durably in the store, never
    fewer, except those `entering` (being spooled, perhaps spooled already); the state is CLEAR exactly while `items`
    is 0.
    """

    def __init__(self, most_items: int, most_bytes: int) -> None:
        self._most_items = most_items
        self._most_bytes = most_bytes
        self._away = False
        self._failures = 0
        self.items = 0
        self.size = 0
        self.entering = 0

    @property
    def state(self) -> SpoolState:
        """The present state."""
        if not self.items:
            return SpoolState.CLEAR
        return SpoolState.FILLING if self._away else SpoolState.DRAINING

    @property
    def away(self) -> bool:
        """Whether the store failed when it was last asked."""
        return self._away

    def way(self, ordered: bool) -> SubmissionWay:
        """The first place of a submission. `ordered`: it has a key or a dedupe key, so its place behind others
        counts."""
        state = self.state
        if state is SpoolState.FILLING or (ordered and (state is SpoolState.DRAINING or self.entering)):
            return SubmissionWay.SPOOL
        return SubmissionWay.STORE

    def may_spool(self, asked: bool, known_again: bool) -> bool:
        """Whether a submission may be spooled. `asked`: the store was asked, and did not answer; `known_again`: the
        queue would recognise the submission."""
        return self._most_items > 0 and (known_again or not asked)

    def check_room(self, held: Loads, more: Loads, whole: Load, *, shared: bool) -> None:
        """Raises Overloaded where a spool that holds so much of each tenant, `whole` of all, may not take so much more.
        `shared`: tenants are in use, so that each leaves others theirs."""
        both = zip(zip(*more.values(), strict=True), whole, (self._most_items, self._most_bytes), strict=True)
        if any(sum(new) + there > most for new, there, most in both):
            raise Overloaded(
                f"the store is away, and the gateway has spooled {whole[0]} workloads ({whole[1]} bytes) of at most "
                f"{self._most_items} ({self._most_bytes} bytes): {BACK}",
                FULL_WAIT,
            )
        if shared:
            for part, room, most in ((0, ITEMS, self._most_items), (1, BYTES, self._most_bytes)):
                there, new = ({tenant: load[part] for tenant, load in loads.items()} for loads in (held, more))
                room.check(there, new, whole[part], most)

    def holds(self, items: int, size: int) -> None:
        """Takes the present content of the spool, after it was opened and after each change."""
        self.items, self.size = items, size

    def answered(self) -> None:
        """Notes that the store answered."""
        self._away, self._failures = False, 0

    def failed(self, random: Callable[[], float] | None = None) -> float:
        """Notes that the store failed. Returns the seconds until it may be asked again, by chance different at each
        gateway."""
        self._away = True
        pause = doubled(*SPOOL, self._failures)
        self._failures += 1
        return jittered(pause, random)
