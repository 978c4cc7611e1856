"""One story told from its beginning to its end: a plan goes in, violations come out."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from ...gateway import spooling
from ...tailers.sources import outbox as outbox_source
from .audit import StoreAudit
from .chance import seeded
from .client import WorldClient
from .clock import MachineClock
from .clones import COPY, NODE, Clones
from .copies import Copies
from .fates import Fates
from .faults import Faults
from .grower import Grower
from .host import Host, current
from .journal import Execution, Journal
from .key_order import KeyOrder
from .leftovers import still_held
from .network import SimNetwork
from .operator import Operator
from .overtime import Overtime
from .parts import (
    DELAY_SERVICES,
    GATEWAYS,
    SCHEDULERS,
    SIZES,
    SimulatedTailers,
    delay,
    gateway,
    main,
    node,
    scheduler,
    store,
    worker,
)
from .plan import Item, Plan, ShopOrder, Timed
from .planting import instead
from .quota_check import QuotaCheck
from .recording import WorldRecord, WorldRecording
from .redriving import Redriving
from .retention_check import DAY, RetentionCheck
from .rights import Rights
from .shop import Shop
from .spooled import SpooledAudit
from .sqlite_disk import Disk
from .sqlite_shop import outbox_of
from .starts import StartsAudit
from .timetables import Timetables
from .trees_audit import TreesAudit, in_small_steps
from .unexplained_runs import UnexplainedRuns
from .world import Event, Spinning, World
from .writes import Writes

#: Workloads that a spool brings at once: so few that more come meanwhile.
SPOOL_BATCH = 3
#: True seconds between two looks at whether everything is over.
LOOK = 1.0
#: True seconds that a world goes on after everything is over, so that what comes too late is seen.
AFTER = 45.0


@dataclass(slots=True)
class StoryEnd:
    """The end of a story. `wrong` is empty when nothing was; `rest` is when everything was over, true seconds."""

    seed: int
    hash: str
    wrong: list[str]
    rest: float
    runs: int
    steps: int
    happened: dict[str, int] = field(default_factory=dict)
    trace: list[Event] = field(default_factory=list)
    record: WorldRecord | None = None


class Story:
    """A world with its hosts, ready to begin. `hosts` are by name; `recording` hears the messages to and from
    tailers."""

    def __init__(self, plan: Plan, *, keep_trace: bool = False, recording: WorldRecording | None = None) -> None:
        self.plan = plan
        self.world = World(plan.seed, keep_trace=keep_trace)
        self.journal = Journal(self.world)
        self.network = SimNetwork(self.world)
        self._recording = recording
        if recording is not None:
            self.network.heard = recording.heard
        self.disk = Disk(in_files=any(fault.kind == "power" for fault in plan.faults))
        self.hosts: dict[str, Host] = {}
        self.spools: dict[str, Disk] = {}  # of gateways, by name
        self._over = False
        schedulers = [f"scheduler{number + 1}" for number in range(plan.schedulers)]
        addresses = [f"{name}:1" for name in schedulers]
        dialled = [SCHEDULERS] if plan.front else addresses
        if plan.front:
            self.network.fronts[SCHEDULERS] = addresses
        if plan.apart:
            self.store = "store"
            self._add("store", main(partial(store, plan)))
            delays = self._behind(
                DELAY_SERVICES, ["delay", *(f"delay{number}" for number in range(2, plan.delays + 1))]
            )
            for name in delays:
                self._add(name, main(partial(delay, "store:store")))
            for number in range(plan.tailers):
                make = partial(SimulatedTailers, plan, dialled[number % len(dialled)], "store:store", DELAY_SERVICES)
                self._add(f"tailer{number + 1}", main(make))
        else:
            self.store = "node"
            self._add("node", main(partial(node, plan, dialled[0])))
        for name in self._behind(GATEWAYS, [f"gateway{number + 1}" for number in range(plan.gateways)]):
            disk = self.spools[name] = Disk(name) if plan.spools else self.disk
            self._add(name, main(partial(gateway, plan, f"{self.store}:store")), disk)
        for name in schedulers:
            self._add(name, main(partial(scheduler, plan)))
        for number in range(plan.workers):
            self._add(f"worker{number + 1}", main(partial(worker, plan, addresses)))
        self.client = WorldClient(plan, f"{self.store}:store")
        self._add("client", self.client.main)
        self.audit = StoreAudit(plan, self.disk, self.journal, self.client)
        self.key_order = KeyOrder(self.disk, self.journal, self.audit.ended) if plan.order != "none" else None
        over, settled = self.audit.ended, self.audit.settled
        self.timetables = Timetables(plan, self.disk, self.journal, self.client, over, settled)
        self.rights = Rights(self.world, self.journal, self.disk, SIZES)
        self.network.said = self.rights.said
        self.overtime = Overtime(plan, self.journal, self._rate)
        self.starts = StartsAudit(plan, self.disk, self.journal)
        self.writes = Writes(self.disk, self.journal, self.audit.ended, self.rights.claimed)
        self.copies = Copies(self.disk, self.journal, self.audit.ended)
        self.unexplained = UnexplainedRuns(plan, self.journal, self.rights.path, self._stores())
        self._guests_hear: list[Callable[[str], None]] = []  # of each commit of the stores, before all others
        self._guests()
        for host in self.hosts.values():
            host.writes = self.writes
        self.hosts[self.store].after_commit = self._committed
        self.faults = Faults(plan, self.world, self.hosts, self.network, self.journal)
        self.faults.restoring = self.audit.restoring
        self.faults.restored = self._restored

    def _guests(self) -> None:
        """Adds the guests that this world's plan asks for."""
        if self.plan.limits:
            QuotaCheck(self.plan, self.journal, lambda: self.hosts["scheduler1"].started)
        if self.plan.redrives:
            self._redrives()
        if self.plan.orders:
            shop = Shop(self.plan, self.disk, self.journal)
            self._add("shop", shop.main)
            self.audit.guests.append(shop)
        if self.plan.spools:
            spooled = SpooledAudit(self.plan, self.disk, self.spools, self.journal, self.client)
            self.audit.guests.append(spooled)
            self.audit.known_as = spooled.known_as

        if self.plan.clones:
            self._clones()
        if self.plan.trees:
            self._grows()
        if self.plan.rolled or any(deed.locks for item in self.plan.items for deed in item.deeds):
            self.audit.guests.append(Fates(self.plan, self.journal, self.audit.buried))
        if self.plan.log_retention or any(fault.kind == "jump" and fault.amount > DAY for fault in self.plan.faults):
            self._guests_hear.append(RetentionCheck(self.plan, self.disk, self.journal).committed)

    def _clones(self) -> None:
        """Adds a node of another platform, and a copy of it."""
        clones = Clones(self.journal)
        for name in (NODE, COPY):
            disk = self.spools[name] = Disk(name)
            self._add(name, clones.main, disk)
            clones.hosts[name] = self.hosts[name]
        self.audit.guests.append(clones)

    def _grows(self) -> None:
        """Adds a client of trees to the world."""
        grower = Grower(self.plan, f"{self.store}:store", lambda: self.hosts["grower"])
        self._add("grower", grower.main)
        trees = TreesAudit(self.plan, self.disk, self.journal, self.client, grower)
        trees.buried = self.audit.buried
        self._guests_hear.append(trees.committed)
        self.audit.guests.append(trees)

    def _redrives(self) -> None:
        """Adds an operator to the world."""
        operator = Operator(self.plan)
        self._add("operator", operator.main)
        redriving = Redriving(self.plan, self.disk, self.journal, operator)
        self._guests_hear.append(redriving.committed)
        self.audit.redriven = redriving.gone
        self.audit.guests.append(redriving)

    def _rate(self, run: Execution) -> float:
        return self.plan.rates.get(run.where.partition("/")[0], 1.0)

    def _stores(self) -> set[str]:
        return {name for name in self.hosts if name.startswith(("node", "store", "delay"))}

    def _behind(self, front: str, names: list[str]) -> list[str]:
        """Puts hosts behind one address, each with an address of its own for the same service."""
        kind = front.rpartition(":")[2]
        self.network.fronts[front] = [f"{name}:{kind}" for name in names]
        return names

    def _add(self, name: str, run: object, disk: Disk | None = None) -> None:
        offset = 1000.0 + 1000.0 * self.world.random.random()
        clock = MachineClock(self.world, self.plan.rates.get(name, 1.0), offset)
        host = Host(self.world, name, clock, run, disk or self.disk, self.network)  # type: ignore[arg-type]
        runnable: list[Item | Timed | ShopOrder] = [*self.plan.items, *self.plan.schedules, *self.plan.orders]
        items = {each.n: each for each in runnable}
        host.journal = self.journal
        branches = {each.n: each for tree in self.plan.trees for each in tree.items}
        host.deeds = lambda n, execution: (
            branches[n].deed(self.journal.runs_of(n)) if n in branches else items[n].deed(execution)
        )
        self.hosts[name] = host

    def _committed(self, file: str) -> None:
        for told in self._guests_hear:
            told(file)
        self.audit.committed(file)
        self.rights.committed(file)
        self.writes.committed(file)
        self.copies.committed(file)

    def _restored(self, file: str, copied: float) -> None:
        """Tells clients and audits that a file of the stores was put back to its content at `copied`."""
        if file == "queue":
            self.hosts["client"].call(self.client.bring_again, copied)
        elif file == "state":
            self.hosts["client"].call(self.client.schedule_again, copied)
            self.audit.restored()
            self.writes.restored()
        elif file == "delay":  # the last of those that are put back together
            self.copies.restored()

    def tell(self) -> StoryEnd:
        """Runs the story to its end."""
        plan, world = self.plan, self.world
        rest = 0.0
        with (
            seeded(plan.seed, self._logged),
            instead(outbox_source, "outbox_of", outbox_of),
            instead(spooling, "BATCH_ITEMS", SPOOL_BATCH),
            in_small_steps() if plan.trees else contextlib.nullcontext(),
        ):
            try:
                for host in self.hosts.values():
                    host.start()
                self.faults.begin()
                if self._run_until_rest():
                    rest = world.now
                    world.say("", "everything is over")
                    world.run(world.now + AFTER)
                    self.audit.at_rest()
                    self.audit.sums(self.hosts.values())
                    if self.key_order is not None:
                        self.key_order.at_rest()
                    self.timetables.at_rest()
                    self.unexplained.at_rest()
                    self.copies.at_rest()
                    for line in still_held(self.hosts.values()):
                        self.journal.wrong(f"left over: {line}")
                elif not self.journal.violations:
                    for line in self.audit.unfinished():
                        self.journal.wrong(line)
                self._failures()
            except Spinning as error:
                self.journal.wrong(str(error))
            finally:
                self._over = True
                world.dispose()
                for disk in {self.disk, *self.spools.values()}:
                    disk.close()
        runs = sum(len(story.executions) for story in self.journal.stories.values())
        wrong, happened = self.journal.violations, dict(world.happened)
        record = None if self._recording is None else self._recording.record(plan.seed, self.journal)
        return StoryEnd(plan.seed, world.hash, wrong, rest, runs, world.steps, happened, world.trace, record)

    def _run_until_rest(self) -> bool:
        world, end = self.world, self.plan.calm + self.plan.patience
        while world.now < end and not self.journal.violations:
            world.run(world.now + LOOK)
            if world.now >= self.plan.calm and self.audit.over():
                return True
        return False

    def _logged(self, line: str) -> None:
        if not self._over:
            self.world.note(current() or "?", f"log: {line}")

    def _failures(self) -> None:
        for host in self.hosts.values():
            if host.failure is not None:
                self.journal.wrong(f"{host.name} failed: {host.failure!r}")
            for complaint in host.complaints():
                self.journal.wrong(f"{host.name}: {complaint}")
