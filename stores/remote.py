"""The stores' protocols over gRPC, for parts that run apart from an embedded store.

Each client has its protocol's methods with the same parameters and results. The type checker compares the methods with
the protocol, and the protocol's type hints define the messages. A wait is held for at most `wire.stores.LONGEST_WAIT`
seconds: then the caller asks again.
"""

from __future__ import annotations

from ..wire.stores import StoreClient, remote
from .checkpoints.checkpoints import Checkpoints
from .control.control import Control
from .dead_letters.dead_letters import DeadLetters
from .drops.drops import Drops
from .heights import Heights
from .inventory.inventory import Inventory
from .jobs.jobs import Jobs
from .ledger.ledger import Ledger
from .log.log import Log
from .ownership.ownership import Ownership
from .queue.queue import Queue
from .replays.replays import Replays
from .results.results import Results
from .schedules.schedules import Schedules
from .segments.segments import Segments
from .troubles import Troubles
from .usage.usage import Usage


class RemoteQueue(StoreClient):
    """A Queue behind a store server at `address` (host:port); `store` is `queue` or `delay_queue`."""

    def __init__(self, address: str, store: str = "queue") -> None:
        super().__init__(address, store)

    submit = remote(Queue.submit)
    tell_again = remote(Queue.tell_again)
    lease = remote(Queue.lease)
    renew = remote(Queue.renew)
    settle = remote(Queue.settle)
    settle_results = remote(Queue.settle_results)
    status = remote(Queue.status)
    cancel = remote(Queue.cancel)
    reschedule = remote(Queue.reschedule)
    peek = remote(Queue.peek)
    find = remote(Queue.find)
    tries = remote(Queue.tries)
    headers = remote(Queue.headers)
    tally = remote(Queue.tally)
    counts = remote(Queue.counts)
    held = remote(Queue.held)
    due = remote(Queue.due)
    ageing = remote(Queue.ageing)


class RemoteJobs(StoreClient):
    """Jobs behind a store server at `address`."""

    def __init__(self, address: str, store: str = "jobs") -> None:
        super().__init__(address, store)

    create = remote(Jobs.create)
    add = remote(Jobs.add)
    seal = remote(Jobs.seal)
    show = remote(Jobs.show)
    still_open = remote(Jobs.still_open)
    held = remote(Jobs.held)
    trees = remote(Jobs.trees)
    results = remote(Jobs.results)
    change = remote(Jobs.change)
    hold = remote(Jobs.hold)
    retry = remote(Jobs.retry)
    redrive = remote(Jobs.redrive)
    gathered = remote(Jobs.gathered)
    audit = remote(Jobs.audit)


class RemoteLog(StoreClient):
    """A Log behind a store server; `store` is `log` or `delay_log`. Store servers serve embedded logs only, which store
    batches."""

    batches = True

    def __init__(self, address: str, store: str = "log") -> None:
        super().__init__(address, store)

    create = remote(Log.create)
    append = remote(Log.append)
    read = remote(Log.read)
    bounds = remote(Log.bounds)
    wait = remote(Log.wait)
    trim = remote(Log.trim)
    streams = remote(Log.streams)
    life = remote(Log.life)


class RemoteCheckpoints(StoreClient):
    """Checkpoints behind a store server at `address`."""

    def __init__(self, address: str, store: str = "checkpoints") -> None:
        super().__init__(address, store)

    open = remote(Checkpoints.open)
    commit = remote(Checkpoints.commit)
    load = remote(Checkpoints.load)
    endings = remote(Checkpoints.endings)
    forget = remote(Checkpoints.forget)


class RemoteDeadLetters(StoreClient):
    """DeadLetters behind a store server at `address`."""

    def __init__(self, address: str, store: str = "dead_letters") -> None:
        super().__init__(address, store)

    add = remote(DeadLetters.add)
    rooms = remote(DeadLetters.rooms)
    list = remote(DeadLetters.list)
    get = remote(DeadLetters.get)
    mark = remote(DeadLetters.mark)
    moved = remote(DeadLetters.moved)
    remove = remote(DeadLetters.remove)
    positions = remote(DeadLetters.positions)
    died = remote(DeadLetters.died)
    died_at = remote(DeadLetters.died_at)
    counts = remote(DeadLetters.counts)
    count = remote(DeadLetters.count)


class RemoteDrops(StoreClient):
    """Drops behind a store server at `address`."""

    def __init__(self, address: str, store: str = "drops") -> None:
        super().__init__(address, store)

    add = remote(Drops.add)
    list = remote(Drops.list)
    within = remote(Drops.within)


class RemoteResults(StoreClient):
    """Results behind a store server at `address`."""

    def __init__(self, address: str, store: str = "results") -> None:
        super().__init__(address, store)

    put = remote(Results.put)
    put_of = remote(Results.put_of)
    get = remote(Results.get)
    gone = remote(Results.gone)


class RemoteHeights(StoreClient):
    """Heights behind a store server at `address`."""

    def __init__(self, address: str, store: str = "heights") -> None:
        super().__init__(address, store)

    name = remote(Heights.name)
    seen = remote(Heights.seen)


class RemoteTroubles(StoreClient):
    """Troubles behind a store server at `address`."""

    def __init__(self, address: str, store: str = "troubles") -> None:
        super().__init__(address, store)

    tell = remote(Troubles.tell)
    all = remote(Troubles.all)


class RemoteUsage(StoreClient):
    """Usage behind a store server at `address`."""

    def __init__(self, address: str, store: str = "usage") -> None:
        super().__init__(address, store)

    add = remote(Usage.add)
    hours = remote(Usage.hours)
    of_hour = remote(Usage.of_hour)


class RemoteControl(StoreClient):
    """A Control store behind a store server at `address`."""

    def __init__(self, address: str, store: str = "control") -> None:
        super().__init__(address, store)

    snapshot = remote(Control.snapshot)
    wait = remote(Control.wait)
    put_gate = remote(Control.put_gate)
    end_gates = remote(Control.end_gates)
    put_quotas = remote(Control.put_quotas)
    quota_changes = remote(Control.quota_changes)
    register = remote(Control.register)
    put_token = remote(Control.put_token)
    remove_token = remote(Control.remove_token)
    begin_act = remote(Control.begin_act)
    end_act = remote(Control.end_act)
    acts = remote(Control.acts)
    forget_acts = remote(Control.forget_acts)
    tell_member = remote(Control.tell_member)
    members = remote(Control.members)
    forget_member = remote(Control.forget_member)
    put_order = remote(Control.put_order)
    answer_order = remote(Control.answer_order)
    order = remote(Control.order)
    belong = remote(Control.belong)


class RemoteInventory(StoreClient):
    """An Inventory behind a store server at `address`."""

    def __init__(self, address: str, store: str = "inventory") -> None:
        super().__init__(address, store)

    offer = remote(Inventory.offer)
    read = remote(Inventory.read)
    end = remote(Inventory.end)
    forget = remote(Inventory.forget)
    floor = remote(Inventory.floor)
    raise_floor = remote(Inventory.raise_floor)


class RemoteSegments(StoreClient):
    """Segments behind a store server at `address`."""

    def __init__(self, address: str, store: str = "segments") -> None:
        super().__init__(address, store)

    append = remote(Segments.append)
    read = remote(Segments.read)
    last = remote(Segments.last)
    trim = remote(Segments.trim)


class RemoteReplays(StoreClient):
    """Replays behind a store server at `address`."""

    def __init__(self, address: str, store: str = "replays") -> None:
        super().__init__(address, store)

    add = remote(Replays.add)
    get = remote(Replays.get)
    list = remote(Replays.list)
    answer = remote(Replays.answer)
    move = remote(Replays.move)


class RemoteSchedules(StoreClient):
    """Schedules behind a store server at `address`."""

    def __init__(self, address: str, store: str = "schedules") -> None:
        super().__init__(address, store)

    put = remote(Schedules.put)
    remove = remote(Schedules.remove)
    get = remote(Schedules.get)
    list = remote(Schedules.list)
    due = remote(Schedules.due)
    fire = remote(Schedules.fire)
    run = remote(Schedules.run)
    read = remote(Schedules.read)
    last = remote(Schedules.last)
    bounds = remote(Schedules.bounds)
    wait = remote(Schedules.wait)
    trim = remote(Schedules.trim)


class RemoteOwnership(StoreClient):
    """An Ownership store behind a store server at `address`."""

    def __init__(self, address: str, store: str = "ownership") -> None:
        super().__init__(address, store)

    read = remote(Ownership.read)
    take = remote(Ownership.take)
    renew = remote(Ownership.renew)
    release = remote(Ownership.release)
    list = remote(Ownership.list)


class RemoteLedger(StoreClient):
    """A Ledger behind a store server at `address`."""

    def __init__(self, address: str, store: str = "ledger") -> None:
        super().__init__(address, store)

    open = remote(Ledger.open)
    write = remote(Ledger.write)
    passed = remote(Ledger.passed)
    get = remote(Ledger.get)
    list = remote(Ledger.list)
    delayed = remote(Ledger.delayed)
    waiting = remote(Ledger.waiting)
    counts = remote(Ledger.counts)
