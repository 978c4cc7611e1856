"""All tailers of one process: those of tailer files, one for due retries, one for schedules, those of replays."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial

from ..foundation.duties import Duties
from ..foundation.lifecycle import all_of, cancel, each_of
from ..foundation.logger import Logger
from ..foundation.looked_for import described
from ..model.audit import Audit, Fate, queue_audit
from ..model.drop import Cause
from ..model.errors import ConfigError, InvalidRequest, TailraceError, Unavailable
from ..model.lease import LeaseSizes
from ..model.overview import TailerOverview
from ..model.parked import Parked, due_function
from ..model.reopening import IN_VAIN
from ..model.seek import Move, Seek
from ..stores.replays.replays import Replays
from ..stores.schedules.schedules import Schedules
from .config import TailerConfig
from .registry import Environment
from .replay.supervisor import ReplaySupervisor
from .resources import Parking, Resources
from .rules.audit_crosscheck import PartitionFacts, after_delay, cross_check
from .rules.audit_sum import tell_apart
from .rules.fleet_placement import BetterPlace
from .source_gates import SourceGates
from .tailer import Tailer

log = Logger("tailrace.tailers")

#: The name of the tailer of due retries; and the configuration of the tailer of schedules, whose records say all else.
DUE = "due"
SCHEDULES = {
    "name": "schedules",
    "source": {"kind": "schedule"},
    "function": {"header": "function"},
    "priority": {"header": "priority"},
    "collection": {"header": "collection"},
    "tenant": {"header": "tenant"},
    "key": {"record": True},
    "order": "key",
    "overlap": {"header": "overlap"},
}
#: Seconds between looks for due streams of functions that never had one, and for a first schedule.
LOOK_EVERY = 2.0
#: Seconds between looks at whether each tailer gets on.
WATCH_EVERY = 1.0
#: Seconds in which a tailer whose file changed finishes the items that are out; the rest runs on, and is adopted.
DRAIN = 10.0

#: Called when one tailer (its name), or all of them (an empty name), became healthy or ceased to be.
OnHealth = Callable[[str, bool], Awaitable[None]]


class Tailers:
    """A part: the tailers of one process. With `due`, a tailer named `due` reads due items, once there are any or this
    process parks some; each function has a window of its own, so that a clogged function (open circuit breaker) never
    holds up another's retries. A tailer named `schedules` reads the runs of schedules once there is a schedule, unless
    a tailer file reads them.
    """

    def __init__(
        self,
        configs: Sequence[TailerConfig],
        environment: Environment,
        scheduler: str,
        parking: Parking,
        sizes: LeaseSizes,
        *,
        due: bool = True,
        on_health: OnHealth | None = None,
        replays: Replays | None = None,
    ) -> None:
        self._due = due
        self._environment = environment
        self._schedules = self._checked(configs)
        self._configs = {config.name: config for config in configs}
        self._parking = parking
        self.duties = Duties("tailers")
        self._resources = Resources(environment, scheduler, self, sizes, self._origin, duties=self.duties)
        self._open = False
        self._tailers: dict[str, Tailer] = {}
        self._replays = None if replays is None else ReplaySupervisor(replays, self._configs, self._resources)
        self._on_health = on_health
        self._health: dict[str, bool] = {}
        self._look: asyncio.Task[None] | None = None
        self._gates = SourceGates(environment.control, self._gated)
        self._moving: asyncio.Task[None] | None = None

    def _checked(self, configs: Sequence[TailerConfig]) -> Schedules | None:
        """The store of schedules, if the tailer named `schedules` is to read it. Raises ConfigError for names that
        clash."""
        names = [config.name for config in configs]
        if len(set(names)) != len(names):
            twice = sorted({name for name in names if names.count(name) > 1})
            raise ConfigError(f"two tailers are named {twice[0]!r}: rename one, since names tell checkpoints apart")
        if self._due and DUE in names:
            raise ConfigError(f"the tailer name {DUE!r} is taken by the tailer of due retries: choose another one")
        if not self._due or any(config.source["kind"] == "schedule" for config in configs):
            return None
        if self._environment.schedules is not None and SCHEDULES["name"] in names:
            raise ConfigError("the tailer name 'schedules' is taken by the tailer of schedules: choose another one")
        return self._environment.schedules

    def check_names(self, configs: Sequence[TailerConfig]) -> None:
        """Raises ConfigError for names that clash."""
        self._checked(configs)

    async def reconfigure(self, configs: Sequence[TailerConfig]) -> dict[str, str]:
        """Makes the tailers those of `configs`: a tailer whose file changed is drained and begins anew from its
        checkpoint, and one whose file is gone is drained and ends. Returns, for each tailer that changed, why it is not
        as its file says (then the former one goes on); empty: it is. Raises ConfigError, with nothing changed."""
        self._checked(configs)
        wanted = {config.name: config for config in configs}
        before = {name: config for name, config in self._configs.items() if wanted.get(name) != config}
        told = dict.fromkeys([*before, *(name for name in wanted if name not in self._configs)], "")
        self._configs.clear()  # in place, since replays share it; a reopening of this part meanwhile starts these
        self._configs.update(wanted)
        await asyncio.gather(*(self._end(name) for name in before))
        for name in told:
            if name in wanted and not await self._begun(wanted[name], told) and name in before:
                await self._begun(before[name], told)
        self._schedules = self._checked(list(self._configs.values()))
        return told

    async def _begun(self, config: TailerConfig, told: dict[str, str]) -> bool:
        """Whether a tailer began as its file says; `told` gets the reason if not. It begins later while this part is
        closed."""
        name = config.name
        self._configs[name] = config
        try:
            if self._open and name not in self._tailers:
                await self._add(config)
        except TailraceError as error:
            told[name] = told[name] or str(error)
            await self._end(name)
            del self._configs[name]
            return False
        return True

    async def _end(self, name: str) -> None:
        tailer = self._tailers.pop(name, None)
        self._health.pop(name, None)
        if tailer is not None:
            try:
                await tailer.drain(DRAIN)
            finally:
                await tailer.stop()

    async def start(self) -> None:
        """Starts every tailer. Raises the first error, with no tailer left running. No tailer reads anything before the
        gates are known."""
        self._open = True
        if self._environment.control is not None:
            with contextlib.suppress(TailraceError):
                await self._gates.look()
        try:
            for config in [*self._configs.values()]:
                await self._add(config)
        except BaseException:
            await self.stop()
            raise
        self.duties.begin(self._keep_watch(), "tailers-watch")
        if self._environment.control is not None:
            self.duties.begin(self._gates.follow(), "tailers-gates")
        if self._due:
            self._look = self.duties.begin(self._find_due(), "due-tailers")
        if self._replays is not None:
            await self._replays.start()

    async def drain(self, timeout: float) -> None:
        """Drains all tailers at once."""
        await self._stop_looking()
        replays = [] if self._replays is None else [self._replays.drain(timeout)]
        await asyncio.gather(*replays, *(tailer.drain(timeout) for tailer in self._tailers.values()))

    async def stop(self) -> None:
        """Ends all tailers at once: otherwise one whose source is away would use up the time in which the others write
        their checkpoints."""
        self._open = False
        self._look = None
        tailers, self._tailers = self._tailers, {}
        replays = [] if self._replays is None else [self._replays.stop]
        stops = [*replays, *(tailer.stop for tailer in tailers.values())]
        await each_of([partial(all_of, stops), self.duties.end])
        self._health = {}

    async def park(self, items: Sequence[Parked]) -> None:
        """Parks items in the delay service, and makes sure that a tailer reads them when they are due."""
        await self._parking.park(items)
        await self.expect(*{item.kind.function for item in items})

    async def expect(self, *functions: str) -> None:
        """Expects due items of these functions from now on."""
        if self._look is not None:
            if DUE not in self._tailers:
                await self._add(TailerConfig.model_validate({"name": DUE, "source": {"kind": "due"}}))
            await self._tailers[DUE].expect(*functions)

    def tailer(self, name: str) -> Tailer | None:
        """The tailer of this name, for pausing and resuming; None: none is here."""
        return self._tailers.get(name)

    def _origin(self, name: str) -> TailerConfig | None:
        """The configuration of the tailer, or the replay, that a parked item first came from."""
        known = self._configs.get(name)
        return known if known is not None or self._replays is None else self._replays.config(name)

    @property
    def replays(self) -> ReplaySupervisor:
        """The replays in which this process has a part. Raises InvalidRequest where it has no store of replays."""
        if self._replays is None:
            raise InvalidRequest("the tailers here run no replays: this process has no store of replays")
        return self._replays

    def _named(self, name: str) -> Tailer:
        tailer = self._tailers.get(name)
        if tailer is None and self._replays is not None:
            tailer = self._replays.tailer(name)
        if tailer is None:
            raise InvalidRequest(f"no tailer {name!r} runs here; there are: {', '.join(sorted(self._tailers))}")
        return tailer

    def _configured(self, name: str) -> Tailer:
        """The tailer of this name. Raises InvalidRequest for an unknown one, and for a replay."""
        self.check(name)
        return self._named(name)

    def movable(self) -> list[str]:
        """The tailers of files that any process with the same file could run, if it had their source."""
        return [name for name in self._configs if name in self._tailers and self._tailers[name].movable]

    def placed(self, elsewhere: Mapping[str, BetterPlace]) -> None:
        """Hears which tailers belong to other processes of the fleet. Free sources are left to those; tailers that run
        here are drained and handed over, one at a time."""
        self._resources.elsewhere.clear()
        self._resources.elsewhere.update({name: each.place for name, each in elsewhere.items()})
        if not self._open or (self._moving is not None and not self._moving.done()):
            return
        for name, each in sorted(elsewhere.items()):
            tailer = self._tailers.get(name)
            if each.settled and tailer is not None and tailer.overview().state in ("running", "clogged"):
                self._moving = self.duties.begin(self._hand_over(name, each.place), "tailers-hand-over")
                return

    async def _hand_over(self, name: str, place: str) -> None:
        config = self._configs.get(name)
        if config is None:
            return
        log.info("handed over", tailer=name, to=place)
        await self._end(name)
        if self._open and self._configs.get(name) is config and name not in self._tailers:
            with contextlib.suppress(TailraceError):  # its file was good until now; the next change of it says why not
                await self._add(config)

    def known(self) -> list[str]:
        """The names of the tailers here, without replays, sorted."""
        return sorted(self._tailers)

    def check(self, name: str) -> None:
        """Raises InvalidRequest for the name of a replay, which no gate of its source pauses."""
        if self._replays is not None and self._replays.tailer(name) is not None:
            raise InvalidRequest(f"{name!r} is a replay: pause, resume or cancel it with `tailrace replay`")

    async def heed(self, name: str) -> None:
        """Puts the gate of a tailer in force, which changed. A tailer that is not paused starts again if it had failed
        for good. Raises InvalidRequest for an unknown tailer, and the errors of the store."""
        tailer = self._configured(name)
        await self._gates.look()
        if not self._gates.paused(name):
            tailer.resume()

    def _gated(self) -> None:
        """Pauses and resumes tailers as the gates say now."""
        for name, tailer in self._tailers.items():
            if (paused := self._gates.paused(name)) is not tailer.paused:
                (tailer.pause if paused else tailer.resume)()

    async def seek(self, seek: Seek) -> list[Move]:
        """Moves a checkpoint by hand; see Tailer.seek. Raises InvalidRequest for an unknown tailer too."""
        return await self._configured(seek.tailer).seek(seek)

    async def audits(self, name: str, partition: str | None = None, span: tuple[int, int] | None = None) -> list[Audit]:
        """The audits of a tailer: how everything that its source had ended, or where it is. Raises InvalidRequest for
        an unknown tailer, partition or range, and the errors of the stores."""
        tailer = self._named(name)
        if tailer.config.source["kind"] == "queue":
            if partition is not None or span is not None:
                raise InvalidRequest(f"the tailer {name!r} reads a queue, which has no positions: audit it as a whole")
            tally = await self._environment.queue.tally()
            return [queue_audit(name, tally.taken, tally.states, tally.forgotten)]
        # Items that a due tailer parks and buries count for their origin; a part of a stream has no counts of its own.
        whole = span is None and tailer.config.source["kind"] != "due"
        before = await self._facts(name) if whole else {}
        found = tailer.audits(partition, span)
        if partition is not None and not found:
            raise InvalidRequest(f"the tailer {name!r} has read no partition {partition!r}")
        if span is not None:
            for audit in found:
                await self._tell_apart(name, audit)
        after = await self._facts(name) if whole else {}
        for audit in found if whole else ():
            later = after.get(audit.partition, PartitionFacts())
            noted = Counter[Cause]()
            for drop in await self._environment.drops.within(name, audit.partition, audit.first, audit.end):
                noted[drop.cause] += drop.items
            later = later._replace(dropped=noted[Cause.GATE] + noted[Cause.SEEK], forgotten=noted[Cause.RETENTION])
            cross_check(audit, before.get(audit.partition, PartitionFacts()), later)
        return found

    async def _tell_apart(self, name: str, audit: Audit) -> None:
        """Completes the audit of a range: how the positions below the frontier ended, by the records in the stores."""
        stores, where = self._environment, (name, audit.partition, audit.first, audit.end)
        tell_apart(audit, await stores.checkpoints.endings(*where))
        if audit.counts.get(Fate.DELAYED.label):
            after_delay(audit, await stores.ledger.waiting(*where), await stores.dead_letters.died(*where))

    async def _facts(self, name: str) -> dict[str, PartitionFacts]:
        """The facts in the stores about each partition. A dead letter is there before its row in the ledger says so."""
        parked = await self._environment.ledger.delayed(name)
        letters = await self._environment.dead_letters.positions(name)
        return {
            partition: PartitionFacts(*parked.get(partition, (0, 0, 0)), letters.get(partition, 0))
            for partition in {*parked, *letters}
        }

    def overviews(self) -> list[TailerOverview]:
        """The overviews of all tailers here, also of replays, sorted by name."""
        replays = [] if self._replays is None else self._replays.overviews()
        found = [*(tailer.overview() for tailer in self._tailers.values()), *replays]
        return sorted(found, key=lambda overview: overview.name)

    async def _add(self, config: TailerConfig) -> None:
        tailer = Tailer(config, self._resources)
        self._tailers[config.name] = tailer
        if self._gates.paused(config.name):
            tailer.pause()
        await tailer.start()

    async def watch(self) -> None:
        """Looks at the health of every tailer once; logs and reports changes."""
        health = {name: tailer.look() for name, tailer in self._tailers.items()}
        self._look_for_help()
        health[""] = all(health.values())
        before, self._health = self._health, health
        for name, well in health.items():
            if before.get(name) is well:
                continue
            if name and not well:
                verdict = self._tailers[name].verdict
                log.warning("no progress", tailer=name, idle=round(verdict.idle), cause=verdict.cause, why=verdict.why)
            elif name and name in before:
                log.info("progress again", tailer=name)
            if self._on_health is not None:
                await self._on_health(name, well)

    def _look_for_help(self) -> None:
        """Notes, for alerts, that no scheduler answers, or that no worker has called the one that does although items
        wait. All tailers here call the same one."""
        facts, at = [each.facts for each in self._tailers.values()], described(self._resources.scheduler)
        silent = next((each.scheduler for each in facts if each.scheduler), "")
        idle = next((each.no_worker for each in facts if each.no_worker and each.lag > 0 and not each.paused), "")
        for duty, why in (
            ("calling the scheduler", silent and f"{at} does not answer: {silent}"),
            ("finding a worker", idle and f"items wait, and {idle} at the scheduler {at}"),
        ):
            if why:
                self.duties.ails(duty, why, self._resources.clock.monotonic(), IN_VAIN)
            else:
                self.duties.well(duty)

    async def _keep_watch(self) -> None:
        while True:
            await self.watch()
            await asyncio.sleep(WATCH_EVERY)

    async def _find_due(self) -> None:
        while True:
            with contextlib.suppress(TailraceError):  # they are looked for again
                known = self._schedules is None or SCHEDULES["name"] in self._tailers
                if not known and self._schedules is not None and await self._schedules.list(1):
                    await self._add(TailerConfig.model_validate(SCHEDULES))
            with contextlib.suppress(Unavailable):
                names = map(due_function, await self._environment.due_log.streams())
                if due := [name for name in names if name is not None]:
                    await self.expect(*due)
            await asyncio.sleep(LOOK_EVERY)

    async def _stop_looking(self) -> None:
        look, self._look = self._look, None
        if look is not None:
            await cancel(look)
