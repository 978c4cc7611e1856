"""The environment of a gateway: stores, parts in its process, and files applied at its start."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..model.limits import Quota
from ..model.schedule import Schedule
from ..stores.control.control import Control
from ..stores.dead_letters.dead_letters import DeadLetters
from ..stores.drops.drops import Drops
from ..stores.jobs.jobs import Jobs
from ..stores.queue.queue import Queue
from ..stores.results.results import Results
from ..stores.schedules.schedules import Schedules
from ..stores.spool.spool import Spool
from ..stores.tailer_states import TailerStates
from ..stores.trusted_time import TrustedTime
from ..stores.usage.usage import Usage
from .file_desk import FileControl
from .overview import Parts, Troubles, no_parts, no_troubles
from .replay_desk import ReplayControl
from .status import Runners, no_runners
from .tailer_desk import Audits, TailerControl, no_audits


@dataclass(frozen=True, slots=True)
class GatewayStores:
    """The stores, embedded or remote. They are the caller's: open before the gateway starts, closed after it stops.

    drops      ranges of streams that were passed without being run; None: unknown to this gateway
    schedules  schedules; None: this gateway keeps none
    usage      amounts used, by the hour; None: this gateway keeps none
    jobs       trees of jobs; None: this gateway keeps none
    tailers    the state of tailers that rests with us; None: unknown to this gateway
    trusted    the time by which old things go; None: the clock's, as it was at the start and went on
    spool      submissions taken while the queue's store is away; None: they are refused then
    """

    queue: Queue
    results: Results
    dead_letters: DeadLetters
    control: Control
    drops: Drops | None = None
    schedules: Schedules | None = None
    usage: Usage | None = None
    jobs: Jobs | None = None
    tailers: TailerStates | None = None
    trusted: TrustedTime | None = None
    spool: Spool | None = None


@dataclass(frozen=True, slots=True)
class Neighbours:
    """The parts in a gateway's process for which it answers calls; by default there are none.

    overview  reports tailers and delay streams (the gateway counts the queue and the dead letters itself)
    audits    makes audits of tailers' sources
    tailers   the tailers that operators may pause and move
    replays   calls of operators about replays; None: this gateway has no store of replays
    troubles  reports failed parts
    runners   the workers that run items, asked of the scheduler beside the gateway
    files     the configuration files of this process, read again on request; None: there are none
    member    the id of this process as a member of the fleet; empty: it is no member
    """

    overview: Parts = no_parts
    audits: Audits = no_audits
    tailers: TailerControl | None = None
    replays: ReplayControl | None = None
    troubles: Troubles = no_troubles
    runners: Runners = no_runners
    files: FileControl | None = None
    member: str = ""


#: A gateway with no other part beside it.
ALONE = Neighbours()


@dataclass(frozen=True, slots=True)
class DeclaredFiles:
    """Contents of files, applied at each start: `quotas.yaml`, and `schedules.yaml` (None: there is no such file)."""

    quotas: Sequence[Quota] = ()
    schedules: Sequence[Schedule] | None = None


#: A gateway without files.
NOTHING_DECLARED = DeclaredFiles()
