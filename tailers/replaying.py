"""The replays of one process: begun, looked after until their last item has ended, and gone on with after a restart.

A replay is `retrying` once its source is done: its tailer is over then, and what failed comes back from the delay
service as any retry does. It is over when nothing waits any more.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import isfinite

import structlog

from ..sdk.lifecycle import cancel
from ..sdk.model.audit import Fate
from ..sdk.model.errors import InvalidRequest, Overloaded, StaleFence, TailraceError, Unavailable
from ..sdk.model.lease import LeaseSizes
from ..sdk.model.ledger import Entry, Place
from ..sdk.model.priority import Priority
from ..sdk.model.replay import OVER, READING, Only, Progress, Replay, ReplayOrder, State, counted
from ..stores.ledger.ledger import Change
from ..stores.replays.replays import KEPT, Replays
from .config import TailerConfig
from .epoch import WHOLE
from .parking import Parking
from .registry import Environment, kind_of
from .replay_plan import ROWS, Planning, book_of, reader_of
from .replay_tailer import ReplayTailer, replay_config

#: Replays that read their source at once. Each is a tailer beside the live ones: a session with the scheduler, and a
#: window of payloads (16 MiB unless its file says otherwise). Those that only wait for retries do not count.
AT_ONCE = 4
#: Seconds between looks at how far they are.
LOOK_EVERY = 0.25
#: Seconds for the last items of a tailer whose source is done.
DRAIN = 5.0
HIGHEST_RATE = 1e9
PAUSE, RESUME, CANCEL = "pause", "resume", "cancel"

log = structlog.get_logger("tailrace.replays")


@dataclass(slots=True)
class Run:
    """A replay that is not over, and its tailer while it reads. `problem`: why it cannot."""

    replay: Replay
    tailer: ReplayTailer | None = None
    problem: str = ""


class Replaying:
    """`parking` takes what fails; `origin` finds a tailer's configuration by its name."""

    def __init__(
        self,
        store: Replays,
        configs: Mapping[str, TailerConfig],
        environment: Environment,
        scheduler: str,
        parking: Parking,
        sizes: LeaseSizes,
        origin: Callable[[str], TailerConfig | None],
        at_once: int = AT_ONCE,
    ) -> None:
        self._store = store
        self._configs = configs
        self._environment = environment
        self._made_of = (environment, scheduler, parking, sizes, origin)
        self._at_once = at_once
        self._runs: dict[int, Run] = {}
        self._changing = asyncio.Lock()  # one order, one change or one look at a time
        self._loaded = False
        self._watch: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Goes on with those that are not over, as soon as the store says which; at once, if it can: what comes due of
        them needs their configurations."""
        with contextlib.suppress(Unavailable):
            await self._load()
        self._watch = asyncio.create_task(self._keep_watch(), name="replays")

    async def drain(self, timeout: float) -> None:
        """Their sources are read no further; what is out ends."""
        await self._stop_watching()
        await asyncio.gather(*(tailer.drain(timeout) for tailer in self._tailers()))

    async def stop(self) -> None:
        """Ends their tailers. They go on at the next start."""
        await self._stop_watching()
        tailers = self._tailers()
        self._runs.clear()
        self._loaded = False
        await asyncio.gather(*(tailer.stop() for tailer in tailers))

    async def _stop_watching(self) -> None:
        watch, self._watch = self._watch, None
        if watch is not None:
            await cancel(watch)

    def _tailers(self) -> list[ReplayTailer]:
        return [run.tailer for run in self._runs.values() if run.tailer is not None]

    def config(self, name: str) -> TailerConfig | None:
        """The configuration of a replay that is not over, by its name: its retries need it."""
        for run in self._runs.values():
            if run.replay.name == name and (live := self._configs.get(run.replay.tailer)) is not None:
                return replay_config(live, run.replay)
        return None

    def tailer(self, name: str) -> ReplayTailer | None:
        """That of a replay, by its name, while it reads."""
        return next((tailer for tailer in self._tailers() if tailer.config.name == name), None)

    # What operators do.

    async def order(self, order: ReplayOrder) -> Progress:
        """Begins a replay, or only says what it would run. Raises InvalidRequest and Overloaded, with nothing begun,
        and what the source and the stores raise."""
        config = self._checked(order)
        async with self._changing:
            kind = kind_of(str(config.source["kind"]))
            reader = reader_of(kind, config, replace(self._environment, tailer=config.name))
            try:
                going = await self._store.list(1 << 20, going=True)
                planning = Planning(config, kind, reader, self._environment)
                stretches = tuple(await planning.plan(order, going))
                sparse = reader.capabilities.sparse
            finally:
                await reader.close()
            replay = Replay(
                0,
                order.tailer,
                stretches,
                order.only,
                order.rate,
                order.priority,
                order.who,
                order.why,
                self._environment.clock.wall(),
                sparse,
            )
            if order.dry_run:
                return Progress(replay, {}, "nothing was begun")
            if not replay.items:
                raise InvalidRequest("there is nothing to run in this range; --dry-run shows what it comes to")
            if sum(each.state in READING for each in going) >= self._at_once:
                raise Overloaded(
                    f"{self._at_once} replays read their sources already: wait for one, cancel one, or raise `replays` "
                    "in gateway.yaml"
                )
            replay = await self._store.add(replay)
            run = self._runs[replay.number] = Run(replay)
            await self._begin(run)
        log.warning("replay begun", replay=replay.name, who=replay.who, why=replay.why, items=replay.items)
        return await self._progress(run)

    def _checked(self, order: ReplayOrder) -> TailerConfig:
        config = self._configs.get(order.tailer)
        if config is None:
            raise InvalidRequest(
                f"no tailer {order.tailer!r} runs here; there are: {', '.join(sorted(self._configs)) or 'none'}"
            )
        if order.only not in list(Only):
            raise InvalidRequest(f"--only is {order.only!r}: expected one of {', '.join(Only)}")
        if order.priority:
            Priority.parse(order.priority)
        if not (isfinite(order.rate) and 0 <= order.rate <= HIGHEST_RATE):
            raise InvalidRequest(f"--rate is {order.rate}: expected 0 (no limit) to {HIGHEST_RATE:g} items per second")
        return config

    async def list(self, limit: int) -> list[Progress]:
        """The newest first."""
        return [await self._progress(self._run_of(each)) for each in await self._store.list(limit)]

    async def get(self, number: int) -> Progress:
        """One of them. Raises InvalidRequest for an unknown one."""
        replay = await self._store.get(number)
        if replay is None:
            raise InvalidRequest(f"there is no replay {number}; `tailrace replay list` shows those there are")
        return await self._progress(self._run_of(replay))

    def _run_of(self, replay: Replay) -> Run:
        known = self._runs.get(replay.number)
        return Run(replay) if known is None else Run(replay, known.tailer, known.problem)

    async def change(self, number: int, what: str) -> Progress:
        """Pauses, resumes or cancels one. Raises InvalidRequest where that means nothing, with nothing changed."""
        states = {PAUSE: State.PAUSED, RESUME: State.RUNNING, CANCEL: State.CANCELLING}
        if what not in states:
            raise InvalidRequest(f"{what!r} is nothing to do with a replay: expected {', '.join(states)}")
        async with self._changing:
            replay = await self._store.move(number, states[what], self._environment.clock.wall(), {})
            run = self._runs.setdefault(number, Run(replay))
            run.replay = replay
            if run.tailer is not None:
                if what == RESUME:
                    run.tailer.resume()
                else:
                    run.tailer.pause()
        log.warning("replay changed", replay=replay.name, what=what)
        return await self._progress(run)

    async def _progress(self, run: Run) -> Progress:
        replay, detail = run.replay, run.problem
        if replay.state in OVER:
            return Progress(replay, replay.counts)
        if run.tailer is not None:
            overview = run.tailer.overview()
            busy = (
                f"{overview.in_flight} in flight, {overview.held} held" if overview.in_flight or overview.held else ""
            )
            detail = "; ".join(filter(None, (overview.detail, busy, overview.why)))
        return Progress(replay, await self._counts(replay), detail)

    async def _counts(self, replay: Replay) -> dict[str, int]:
        """As the stores have it: also of one that reads elsewhere, or not at all."""
        stores, tally = self._environment, Counter[Fate]()
        for mark in (await stores.checkpoints.load(replay.name)).values():
            if (book := book_of(mark, replay.sparse)) is not None:
                tally.update({fate: book.tally[fate] for fate in Fate})
                tally.update(book.ahead())
        delayed = (await stores.ledger.delayed(replay.name)).values()
        return counted(
            tally,
            sum(one.waiting for one in delayed),
            sum(one.done for one in delayed),
            sum(one.dead for one in delayed),
        )

    # What happens by itself.

    async def _load(self) -> None:
        """Learns once which there are."""
        if not self._loaded:
            for replay in await self._store.list(1 << 20, going=True):
                self._runs.setdefault(replay.number, Run(replay))
            for replay in await self._store.list(KEPT):
                if replay.state in OVER and await self._environment.checkpoints.load(replay.name):
                    await self._environment.checkpoints.forget(replay.name)  # its process died between the two
            self._loaded = True

    async def _keep_watch(self) -> None:
        while True:
            with contextlib.suppress(Unavailable):
                await self._load()
            for run in list(self._runs.values()):
                try:
                    async with self._changing:
                        await self._look(run)
                except Unavailable as error:  # looked at again; the tailers themselves say that a store is away
                    log.debug("a replay cannot be looked after now", replay=run.replay.name, reason=str(error))
                except Exception:
                    log.exception("a replay cannot be looked after; trying again", replay=run.replay.name)
            await asyncio.sleep(LOOK_EVERY)

    async def _look(self, run: Run) -> None:
        state = run.replay.state
        if run.tailer is not None:
            run.tailer.look()
        if state in READING and run.tailer is None:
            await self._begin(run)
        elif state is State.RUNNING and run.tailer is not None and run.tailer.settled:
            await self._end_tailer(run)
            await self._move(run, State.RETRYING)
        elif state is State.CANCELLING and not (run.tailer is not None and run.tailer.busy):
            await self._end_tailer(run)
            if not await self._give_up_waiting(run.replay):
                await self._forget_rows(run.replay)
                await self._move(run, State.CANCELLED)
        elif state is State.RETRYING:
            delayed = await self._environment.ledger.delayed(run.replay.name)
            if not any(one.waiting for one in delayed.values()):
                await self._move(run, State.DONE)

    async def _begin(self, run: Run) -> None:
        """Starts its tailer, unless that cannot be: then `problem` says why, and it is tried again."""
        config = self._configs.get(run.replay.tailer)
        if config is None:
            run.problem = (
                f"no tailer {run.replay.tailer!r} runs here any more: put its file back, or cancel this replay"
            )
            return
        try:
            tailer = ReplayTailer(run.replay, config, *self._made_of)
            if run.replay.state is State.PAUSED:
                tailer.pause()
            await tailer.start()
        except TailraceError as error:
            run.problem = str(error)
            return
        run.tailer, run.problem = tailer, ""

    async def _end_tailer(self, run: Run) -> None:
        tailer, run.tailer = run.tailer, None
        if tailer is not None:
            await tailer.drain(DRAIN)
            await tailer.stop()

    async def _give_up_waiting(self, replay: Replay) -> int:
        """What waits for a retry is over, by its rows: a copy that comes due finds that. Returns how many are not over:
        they run."""
        ledger, left = self._environment.ledger, 0
        after = ("", -1)
        while rows := await ledger.list(replay.name, ROWS, after):
            after = (rows[-1].partition, rows[-1].entry.position)
            changes: dict[str, list[Change]] = {}
            for partition, entry in rows:
                if entry.place in (Place.PARKING, Place.PARKED):
                    changes.setdefault(partition, []).append((entry, entry._replace(place=Place.DONE)))
                left += entry.place is Place.RUNNING
            for partition, wanted in changes.items():
                answers = await ledger.write(replay.name, partition, wanted, None)
                left += sum(_is_waiting(answer) for answer in answers)
        return left

    async def _forget_rows(self, replay: Replay) -> None:
        """A cancelled replay's checkpoint passes no further, so its rows would stay: all of them are over (L20)."""
        stores = self._environment
        owner = await stores.ownership.read(replay.name, WHOLE)
        if owner is None:
            return
        for stretch in replay.stretches:
            with contextlib.suppress(StaleFence):
                await stores.ledger.passed(replay.name, stretch.partition, owner.epoch, stretch.end)

    async def _move(self, run: Run, state: State) -> None:
        counts = await self._counts(run.replay) if state in OVER else {}
        run.replay = await self._store.move(run.replay.number, state, self._environment.clock.wall(), counts)
        if state in OVER:
            self._runs.pop(run.replay.number, None)
            await self._environment.checkpoints.forget(run.replay.name)  # its counts are kept with it
            log.info("replay over", replay=run.replay.name, state=state.value, **counts)


def _is_waiting(row: Entry | None) -> bool:
    return row is not None and row.place in (Place.PARKING, Place.PARKED, Place.RUNNING)
