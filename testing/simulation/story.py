"""One story told from its beginning to its end: a plan in, what went wrong out."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

from .audit import Audit
from .chance import seeded
from .client import Client
from .clock import MachineClock
from .faults import Faults
from .host import Host, current
from .journal import Journal
from .network import Network
from .parts import (
    DELAY_SERVICES,
    GATEWAYS,
    SCHEDULERS,
    SeparateTailers,
    delay,
    gateway,
    main,
    node,
    scheduler,
    store,
    worker,
)
from .plan import Item, Plan, Timed
from .sqlite_disk import Disk
from .timetables import Timetables
from .turns import Turns
from .world import Event, Spinning, World

#: True seconds between two looks at whether everything is over.
LOOK = 1.0
#: True seconds that a world goes on after everything is over, so that what comes too late is seen.
AFTER = 45.0


@dataclass(slots=True)
class Told:
    """How a story ended. `wrong` is empty when nothing was; `rest` is when everything was over, true seconds."""

    seed: int
    hash: str
    wrong: list[str]
    rest: float
    runs: int
    steps: int
    trace: list[Event] = field(default_factory=list)


class Story:
    """A world with its hosts, ready to begin. `hosts` are by name."""

    def __init__(self, plan: Plan, *, keep_trace: bool = False) -> None:
        self.plan = plan
        self.world = World(plan.seed, keep_trace=keep_trace)
        self.journal = Journal(self.world)
        self.network = Network(self.world)
        self.disk = Disk()
        self.hosts: dict[str, Host] = {}
        self._over = False
        schedulers = [f"scheduler{number + 1}" for number in range(plan.schedulers)]
        addresses = [f"{name}:1" for name in schedulers]
        dialled = [SCHEDULERS] if plan.front else addresses
        if plan.front:
            self.network.fronts[SCHEDULERS] = addresses
        if plan.apart:
            self.store = "store"
            self._add("store", main(store))
            delays = self._behind(
                DELAY_SERVICES, ["delay", *(f"delay{number}" for number in range(2, plan.delays + 1))]
            )
            for name in delays:
                self._add(name, main(partial(delay, "store:store")))
            for number in range(plan.tailers):
                make = partial(SeparateTailers, plan, dialled[number % len(dialled)], "store:store", DELAY_SERVICES)
                self._add(f"tailer{number + 1}", main(make))
        else:
            self.store = "node"
            self._add("node", main(partial(node, plan, dialled[0])))
        for name in self._behind(GATEWAYS, [f"gateway{number + 1}" for number in range(plan.gateways)]):
            self._add(name, main(partial(gateway, f"{self.store}:store")))
        for name in schedulers:
            self._add(name, main(partial(scheduler, plan)))
        for number in range(plan.workers):
            self._add(f"worker{number + 1}", main(partial(worker, plan, addresses)))
        self.client = Client(plan, f"{self.store}:store")
        self._add("client", self.client.main)
        self.audit = Audit(plan, self.disk, self.journal, self.client)
        self.turns = Turns(self.disk, self.journal, self.audit.ended) if plan.order != "none" else None
        self.timetables = Timetables(plan, self.disk, self.journal, self.client, self.audit.ended)
        self.hosts[self.store].after_commit = self.audit.committed
        self.faults = Faults(plan, self.world, self.hosts, self.network, self.journal)
        self.faults.restoring = self.audit.restoring
        self.faults.restored = self._restored

    def _behind(self, front: str, names: list[str]) -> list[str]:
        """Has hosts stand behind an address, each with its own of the same kind."""
        kind = front.rpartition(":")[2]
        self.network.fronts[front] = [f"{name}:{kind}" for name in names]
        return names

    def _add(self, name: str, run: object) -> None:
        offset = 1000.0 + 1000.0 * self.world.random.random()
        clock = MachineClock(self.world, self.plan.rates.get(name, 1.0), offset)
        host = Host(self.world, name, clock, run, self.disk, self.network)  # type: ignore[arg-type]
        runnable: list[Item | Timed] = [*self.plan.items, *self.plan.schedules]
        items = {each.n: each for each in runnable}
        host.journal = self.journal
        host.deeds = lambda n, execution: items[n].deed(execution)
        self.hosts[name] = host

    def _restored(self, file: str, copied: float) -> None:
        """A file of the stores was put back to what it was then."""
        if file == "queue":
            self.hosts["client"].call(self.client.bring_again, copied)
        elif file == "state":
            self.hosts["client"].call(self.client.schedule_again, copied)
            self.audit.restored()

    def tell(self) -> Told:
        """Runs it to its end."""
        plan, world = self.plan, self.world
        rest = 0.0
        with seeded(plan.seed, self._logged):
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
                    if self.turns is not None:
                        self.turns.at_rest()
                    self.timetables.at_rest()
                elif not self.journal.violations:
                    for line in self.audit.unfinished():
                        self.journal.wrong(line)
                self._failures()
            except Spinning as error:
                self.journal.wrong(str(error))
            finally:
                self._over = True
                world.dispose()
                self.disk.close()
        runs = sum(len(story.executions) for story in self.journal.stories.values())
        return Told(plan.seed, world.hash, self.journal.violations, rest, runs, world.steps, world.trace)

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
