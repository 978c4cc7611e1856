"""The replays in which one process has a part: those of its tailers, found by their rows in the store of replays, run
until their last item has ended, and gone on with after a restart or another process's death.

Every process that runs a tailer of that name has a tailer for its replay. The replay's own ownership row says which of
them reads, as for any stream: the others stand by. Orders of operators are in the replay's row in the store, so that
any gateway over the same stores can ask for a replay (`asked`) and change it.

A replay is `retrying` once its source is done: its tailer is over then, and failed items come back from the delay
service as any retry does. A replay is over when none of its items waits any more.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Mapping
from dataclasses import dataclass, replace

from ...foundation.lifecycle import cancel
from ...foundation.logger import Logger
from ...model.errors import InvalidRequest, TailraceError, Unavailable
from ...model.jitter import jittered
from ...model.overview import TailerOverview
from ...model.replay import OVER, READING, Replay, ReplayState, tailer_of
from ...stores.replays.replays import KEPT, Replays
from ..config import TailerConfig
from ..registry import kind_of
from ..resources import Resources
from .cancelling import Cancelling
from .plan import Planning, reader_of
from .progress import counts_of
from .tailer import ReplayTailer, replay_config

#: Seconds between looks at the rows, on average: a jitter keeps several processes apart. A change of a row in this
#: process is seen at once (`wake`).
ROWS_EVERY = 1.0
#: Seconds between looks at the progress of the tailers here.
LOOK_EVERY = 0.25
#: Seconds for the last items of a tailer whose source is done.
DRAIN = 5.0
#: Seconds after which a tailer that had to stop is tried again: its cause may have gone by then.
AGAIN_AFTER = 30.0
#: Seconds after which an order that no process took up is not begun any more: its operator was told so before.
ORDER_HOLDS = 60.0

log = Logger("tailrace.replays")


@dataclass(slots=True)
class RunningReplay:
    """A replay that is not over, and its tailer here while there is one. `problem`: why the tailer cannot start."""

    replay: Replay
    tailer: ReplayTailer | None = None
    problem: str = ""


class ReplaySupervisor:
    """The replays of this process. `configs` has the configurations of this process's tailers, by name; their replays
    share `resources` with them."""

    def __init__(self, store: Replays, configs: Mapping[str, TailerConfig], resources: Resources) -> None:
        self._store = store
        self._configs = configs
        self._resources = resources
        self._environment = environment = resources.environment
        self._cancelling = Cancelling(environment.ownership, environment.ledger, resources.clock, resources.sizes.drift)
        self._runs: dict[int, RunningReplay] = {}
        self._rows_at = 0.0  # the time of the next look at the rows, by the monotonic clock
        self._wake = asyncio.Event()
        self._tidied = False
        self._watch: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Goes on with the replays that are not over, as soon as they are read from the store."""
        self._watch = self._resources.duties.begin(self._keep_watch(), "replays")

    async def drain(self, timeout: float) -> None:
        """Drains the tailers of replays: they read no further, and wait until the items that are out have ended."""
        await self._stop_watching()
        await asyncio.gather(*(tailer.drain(timeout) for tailer in self._tailers()))

    async def stop(self) -> None:
        """Ends the tailers of replays, which go on at the next start, or in another process."""
        await self._stop_watching()
        tailers = self._tailers()
        self._runs.clear()
        self._rows_at, self._tidied = 0.0, False
        await asyncio.gather(*(tailer.stop() for tailer in tailers))

    async def _stop_watching(self) -> None:
        watch, self._watch = self._watch, None
        if watch is not None:
            await cancel(watch)

    def _tailers(self) -> list[ReplayTailer]:
        return [run.tailer for run in self._runs.values() if run.tailer is not None]

    def config(self, name: str) -> TailerConfig | None:
        """The configuration of a replay, by its name: its retries need it, also before its row was read here."""
        if (live := self._configs.get(tailer_of(name))) is None:
            return None
        known = next((run.replay for run in self._runs.values() if run.replay.name == name), None)
        return live.model_copy(update={"name": name, "expires": None}) if known is None else replay_config(live, known)

    def tailer(self, name: str) -> ReplayTailer | None:
        """The tailer of a replay, by its name, while it reads."""
        return next((tailer for tailer in self._tailers() if tailer.config.name == name), None)

    def overviews(self) -> list[TailerOverview]:
        """The overviews of the tailers of replays here, of those that read and those that stand by."""
        return [tailer.overview() for tailer in self._tailers()]

    def detail(self, replay: Replay) -> str:
        """The state of a replay and its obstacles, as far as this process knows, for people; empty: it has no part in
        it."""
        run = self._runs.get(replay.number)
        if run is None or run.tailer is None or not run.tailer.owns:
            return "" if run is None else run.problem
        overview = run.tailer.overview()
        busy = f"{overview.in_flight} in flight, {overview.held} held" if overview.in_flight or overview.held else ""
        return "; ".join(filter(None, (overview.detail, busy, overview.why)))

    def wake(self) -> None:
        """Has the rows looked at now, since one was written in this process."""
        self._rows_at = 0.0
        self._wake.set()

    # The watch.

    async def _keep_watch(self) -> None:
        clock = self._environment.clock
        while True:
            try:
                if clock.monotonic() >= self._rows_at:
                    self._rows_at = clock.monotonic() + jittered(ROWS_EVERY, random.random)
                    await self._read_rows()
            except TailraceError as error:  # the tailers themselves say that a store is away
                log.debug("replays cannot be looked for now", reason=str(error))
            except Exception:
                log.exception("replays cannot be looked for; trying again")
            for run in list(self._runs.values()):
                try:
                    await self._look(run)
                except Unavailable as error:
                    log.debug("a replay cannot be looked after now", replay=run.replay.name, reason=str(error))
                except Exception:
                    log.exception("a replay cannot be looked after; trying again", replay=run.replay.name)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_EVERY):
                    await self._wake.wait()
            self._wake.clear()

    async def _read_rows(self) -> None:
        """Learns which replays there are, and their states; answers those that are asked for."""
        if not self._tidied:
            await self._tidy()
        going = {each.number: each for each in await self._store.list(1 << 20, going=True)}
        for number, replay in going.items():
            if replay.state is not ReplayState.ASKED:
                run = self._runs.setdefault(number, RunningReplay(replay))
                run.replay = replay
        for number in self._runs.keys() - going.keys():
            await self._over(self._runs[number])
        asked = sorted(number for number, replay in going.items() if replay.state is ReplayState.ASKED)
        first: set[str] = set()  # the oldest of each tailer: the next one is planned once this one's answer is seen
        for number in asked:
            replay = going[number]
            if replay.tailer in self._configs and replay.tailer not in first:
                first.add(replay.tailer)
                await self._answer(replay, [each for each in going.values() if each.state is not ReplayState.ASKED])

    async def _tidy(self) -> None:
        """Forgets checkpoints of replays that are over, which stayed when their process died at that moment."""
        for replay in await self._store.list(KEPT):
            if replay.state in OVER and await self._environment.checkpoints.load(replay.name):
                await self._environment.checkpoints.forget(replay.name)
        self._tidied = True

    async def _answer(self, asked: Replay, going: list[Replay]) -> None:
        """Answers an order with its positions, or with the reason for a refusal."""
        wall = self._environment.clock.wall()
        try:
            if wall - asked.created_at > ORDER_HOLDS:
                raise InvalidRequest(
                    f"no process took the replay up within {ORDER_HOLDS:g} s, by the clock of the tailer's host, so it "
                    "was not begun: ask again"
                )
            answer = await self._planned(asked, going)
        except TailraceError as error:
            answer = replace(asked, state=ReplayState.REFUSED, detail=str(error), ended_at=wall)
        there = await self._store.answer(answer)
        self.wake()  # the next one may be planned now
        if there == answer and answer.state is ReplayState.RUNNING:
            self._runs[answer.number] = RunningReplay(answer)
            log.warning("replay begun", replay=answer.name, who=answer.who, why=answer.why, items=answer.items)

    async def _planned(self, asked: Replay, going: list[Replay]) -> Replay:
        config, order = self._configs[asked.tailer], asked.order
        assert order is not None, "a replay that is asked for has its order"
        order.check()
        kind = kind_of(str(config.source["kind"]))
        reader = reader_of(kind, config, replace(self._environment, tailer=config.name))
        try:
            planning = Planning(config, kind, reader, self._environment)
            stretches = tuple(await planning.plan(order, going))
            sparse = reader.capabilities.sparse
        finally:
            await reader.close()
        replay = replace(asked, stretches=stretches, sparse=sparse, state=ReplayState.RUNNING)
        if order.dry_run:
            return replace(replay, state=ReplayState.LOOKED, ended_at=self._environment.clock.wall())
        if not replay.items:
            raise InvalidRequest("there is no item to run in this range; --dry-run shows what is in it")
        return replay

    async def _look(self, run: RunningReplay) -> None:
        state, tailer = run.replay.state, run.tailer
        if tailer is not None:
            tailer.look()
        if state in READING and tailer is None:
            await self._begin(run)
        elif state in READING and tailer is not None:
            tailer.hold(state is ReplayState.PAUSED)
            tailer.try_again(AGAIN_AFTER)
            if state is ReplayState.RUNNING and tailer.settled:
                await self._end_tailer(run)
                await self._move(run, ReplayState.RETRYING)
        elif state is ReplayState.CANCELLING:
            if tailer is not None and tailer.owns:
                tailer.hold(True)
                if tailer.busy:
                    return
            await self._end_tailer(run)
            if await self._cancelling.done(run.replay):
                await self._move(run, ReplayState.CANCELLED)
        elif state is ReplayState.RETRYING:
            await self._end_tailer(run)  # it stood by while another process read
            delayed = await self._environment.ledger.delayed(run.replay.name)
            if not any(one.waiting for one in delayed.values()):
                await self._move(run, ReplayState.DONE)

    async def _begin(self, run: RunningReplay) -> None:
        """Starts the tailer of a replay; if that fails, `problem` says why, and it is tried again."""
        config = self._configs.get(run.replay.tailer)
        if config is None:
            return
        try:
            tailer = ReplayTailer(run.replay, config, self._resources)
            tailer.hold(run.replay.state is ReplayState.PAUSED)
            await tailer.start()
        except TailraceError as error:
            run.problem = str(error)
            return
        run.tailer, run.problem = tailer, ""

    async def _end_tailer(self, run: RunningReplay) -> None:
        tailer, run.tailer = run.tailer, None
        if tailer is not None:
            if tailer.owns:
                await tailer.drain(DRAIN)
            await tailer.stop()

    async def _move(self, run: RunningReplay, state: ReplayState) -> None:
        """Moves a replay into the next state, unless an operator or another process was faster."""
        counts = await counts_of(run.replay, self._environment) if state in OVER else {}
        try:
            run.replay = await self._store.move(run.replay.number, state, self._environment.clock.wall(), counts)
        except InvalidRequest:
            self.wake()
            return
        if state in OVER:
            await self._over(run)
            log.info("replay over", replay=run.replay.name, state=state.value, **counts)

    async def _over(self, run: RunningReplay) -> None:
        """Cleans up after a replay that is over, here or elsewhere: its counts are kept with it, so its checkpoint is
        forgotten."""
        await self._end_tailer(run)
        await self._environment.checkpoints.forget(run.replay.name)
        self._cancelling.over(run.replay.number)
        self._runs.pop(run.replay.number, None)
