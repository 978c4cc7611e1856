"""Settlements of a queue tailer's items in their queue: gathered by claim, written one batch at a time.

While one batch is written the next one gathers, so writes grow under load and a lone item is settled at once. Where
items end one by one in a steady flow, plain successes gather for a moment behind each write
(`rules/settlement_linger.py`). Results and dead letters are durable before the queue hears that their items are over
(law 3). Items that become dead letters go in a line of their own: a letter takes a look at the queue and a write
elsewhere first, and where either is slow or away, all other items are settled all the same.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from ...foundation.clock import Clock
from ...foundation.logger import Logger
from ...model.backoff import STORE
from ...model.claim import Settle, State
from ...model.dead_letter import DeadLetter
from ...model.errors import InvalidRequest
from ...model.outcome import Outcome
from ...model.tries import added
from ...model.workload import Ended, Extra, Flight
from ...sdk.source import QueueSource, ReorderingSource, ResultSource
from ..hand_out import HandOut
from ..resources import Setup
from ..rules.hand_back import HandBacks
from ..rules.letter_waits import LetterWaits, uncharged
from ..rules.pieces import pieces
from ..rules.settlement import FIRST_AGAIN, Action, Settlement
from ..rules.settlement_linger import Gathering
from .dead_letters import letter_of_queued, letter_of_unfit, room_of
from .durable import T, look_for_room, until_available

#: Throttle counts remembered, and counts of losses, by id; the oldest are forgotten first.
_REMEMBERED = 100_000
#: Bytes that a letter and a settlement may have beside a payload or a result: reasons, tries and notes.
LETTER_BYTES, SETTLE_BYTES = 4096, 2048
#: Letters kept here of items of jobs that are over; more are not kept: their jobs have them, and redrive them by id.
UNFIT = 1000
#: Seconds of delay of an item that goes back at once and has no right to be the first.
LEAST_DELAY = 1e-6

log = Logger("tailrace.tailer")

_ENDS = {
    Outcome.SUCCESS: State.SUCCESS,
    Outcome.DROPPED: State.DROPPED,
    Outcome.EXPIRED: State.EXPIRED,
    Outcome.CANCELLED: State.CANCELLED,
}


#: An item that succeeded, by its hand-out and its index there, with its payload and its end.
_Success = tuple[HandOut, int, bytes, Ended]


@dataclass(slots=True)
class _Batch:
    """Settlements to be written of one fence, and the window that they free."""

    succeeded: list[str] = field(default_factory=list)
    others: list[Settle] = field(default_factory=list)
    items: int = 0
    size: int = 0


@dataclass(slots=True)
class _Line:
    """Batches by fence, one after the other. Invariant: an item that was put in line is in `pending`, in `under_way`
    (being written), or settled."""

    pending: dict[int, _Batch] = field(default_factory=dict)
    under_way: dict[int, _Batch] = field(default_factory=dict)
    wake: asyncio.Event = field(default_factory=asyncio.Event)

    def batch(self, fence: int) -> _Batch:
        """The batch of a fence that gathers, to be added to at once."""
        self.wake.set()
        return self.pending.setdefault(fence, _Batch())

    def begin(self) -> None:
        """Notes that everything that gathered is being written from now on."""
        self.under_way, self.pending = self.pending, {}

    def end(self) -> tuple[int, int]:
        """Ends the write, which is durable: its items and bytes of the window."""
        batches, self.under_way = self.under_way.values(), {}
        return sum(batch.items for batch in batches), sum(batch.size for batch in batches)


class QueueSettlements:
    """The settlements of one queue tailer. `settled` hears (items, bytes, dead letters) of each durable batch,
    `failing` why a store refuses ("" when it does not).

    letters_failing  why letters cannot be written, "" when they can

    Invariant: an item that ended is in one of the two lines, or settled; a letter in `_letters` is of one in `_dying`,
    or of one that failed as it was settled, and `_dying` has its fence.
    """

    def __init__(
        self,
        setup: Setup,
        source: QueueSource,
        settled: Callable[[int, int, int], None],
        failing: Callable[[str], None],
    ) -> None:
        self.letters_failing = ""
        self._tailer = setup.config.name
        self._environment = setup.environment
        self._clock: Clock = setup.clock
        self._source = source
        self._settled = settled
        self._failing = failing
        self._pauses = STORE.within(setup.sizes.heartbeat)
        self._ending, self._dying = _Line(), _Line()
        self._letters: list[DeadLetter] = []
        self._results: dict[str, bytes] = {}
        self._tenants: dict[str, str] = {}  # of these, where they have one
        self._of_jobs: dict[str, _Success] = {}  # of items of jobs with results, until they are settled
        self._throttles: dict[str, int] = {}
        self._lost: dict[str, int] = {}  # how often it was lost since it was last settled
        self._gathering = Gathering(setup.config.window.items)
        self._hurry = asyncio.Event()  # set when gathering items wait no longer
        self.hand_backs: HandBacks[str] = HandBacks()
        self.letter_waits: LetterWaits[str] = LetterWaits()
        self._letters_wait = asyncio.Event()
        self._unfit: dict[str, DeadLetter] = {}  # letters of items that are over already, and wait for room here

    @property
    def busy(self) -> bool:
        """Whether something is on its way into a store."""
        return any(line.under_way or line.pending for line in (self._ending, self._dying))

    def unsettled(self) -> dict[int, list[str]]:
        """Ids of items that ended and are not settled yet, by fence: each counts as out until it is, or somebody would
        run it once more."""
        found: dict[int, list[str]] = {}
        for line in (self._ending, self._dying):
            for fence, batch in (*line.under_way.items(), *line.pending.items()):
                ids = found.setdefault(fence, [])
                ids += batch.succeeded
                ids += [each.id for each in batch.others]
        return found

    def succeed(
        self,
        fence: int,
        ids: Sequence[str],
        items: int,
        size: int,
        result: bytes | None = None,
        *,
        tenant: str = "",
        awaited: bool = False,
    ) -> None:
        """Acknowledges items that need nothing more; `items` and `size` also count items that are not ours any more.
        `awaited`: somebody waits for their end, such as the next one of a key."""
        batch = self._ending.batch(fence)
        if self._gathering.add(items, self._clock.monotonic(), awaited=awaited or result is not None):
            self._hurry.set()
        batch.succeeded.extend(ids)
        batch.items += items
        batch.size += size
        if result is not None:
            self._results[ids[0]] = result
            if tenant:
                self._tenants[ids[0]] = tenant
        if self._throttles:
            for each in ids:
                self._throttles.pop(each, None)
        if self._lost:
            for each in ids:
                self._lost.pop(each, None)
        if self.hand_backs:
            self.hand_backs.over(ids)
        if self.letter_waits:
            self.letter_waits.over(ids)

    def succeed_of_job(self, out: HandOut, index: int, size: int, ended: Ended) -> None:
        """Settles an item of a job that succeeded; its result is stored together with its end."""
        fence, id_ = out.flight.fence, out.flight.ids[index]
        self.succeed(fence, [], 1, size, awaited=True)
        if ended.result is None:
            self._ending.batch(fence).succeeded.append(id_)
        else:
            self._ending.batch(fence).others.append(Settle(id_, fence, State.SUCCESS, result=ended.result))
            self._of_jobs[id_] = out, index, out.flight.payloads[index], ended
        for kept in (self._throttles, self._lost):
            kept.pop(id_, None)
        if self.hand_backs:
            self.hand_backs.over([id_])

    def claimed(self, flight: Flight) -> None:
        """Marks claimed items that were out before and were lost: they go first."""
        if self._lost:
            for index, id_ in enumerate(flight.ids):
                if 0 < self._lost.get(id_, 0) <= FIRST_AGAIN:
                    flight.extras.setdefault(index, Extra()).again = True

    def throttles_of(self, id_: str) -> int:
        """Number of times in a row that an item was throttled so far; forgotten here, since it ended."""
        return self._throttles.pop(id_, 0)

    def end(self, out: HandOut, index: int, settlement: Settlement, ended: Ended) -> None:
        """Settles an item that did not plainly succeed."""
        flight = out.flight
        dies = settlement.action is Action.DEAD
        batch = (self._dying if dies else self._ending).batch(flight.fence)
        if not dies and self._gathering.add(1, self._clock.monotonic(), awaited=True):
            self._hurry.set()
        batch.items += 1
        batch.size += len(flight.payloads[index])
        if dies:
            self._letters.append(letter_of_queued(out, index, self._tailer, settlement, ended, self._clock.wall()))
        match settlement.action:
            case Action.DONE:
                state = _ENDS[Outcome(ended.outcome)]
            case Action.DEAD:
                state = State.FATAL_FAILURE
            case _:
                state = State.RETRIABLE_FAILURE if settlement.failed else State.NEW
        if settlement.throttles and settlement.action is Action.RETURN:
            if len(self._throttles) >= _REMEMBERED:
                del self._throttles[next(iter(self._throttles))]
            self._throttles[flight.ids[index]] = settlement.throttles
        batch.others.append(
            Settle(
                flight.ids[index],
                flight.fence,
                state,
                0.0 if self._goes_first(flight.ids[index], settlement, ended) else max(settlement.delay, LEAST_DELAY),
                settlement.failed,
                settlement.crashes,
                settlement.reason,
                ended.progress,
                settlement.throttles,
                "" if ended.outcome == Outcome.HELD else Outcome(ended.outcome).name.lower(),
            )
        )

    def _goes_first(self, id_: str, settlement: Settlement, ended: Ended) -> bool:
        """Whether an item goes back before all that waits: it had its turn, and lost it."""
        times = self._lost.pop(id_, 0)
        if ended.outcome == Outcome.LOST:
            times += 1
        if not times or ended.outcome not in (Outcome.LOST, Outcome.HELD) or settlement.action is not Action.RETURN:
            return False
        if len(self._lost) >= _REMEMBERED:
            del self._lost[next(iter(self._lost))]
        self._lost[id_] = times
        return times <= FIRST_AGAIN and not settlement.delay

    async def run(self) -> None:
        """Settles for ever the items that do not die. Raises every error of a store, except that it is unavailable."""
        line = self._ending
        while True:
            await line.wake.wait()
            line.wake.clear()
            while line.pending:
                await self._gather()
                self._hurry.clear()
                self._gathering.written(self._clock.monotonic())
                line.begin()
                results, self._results = [*self._results.items()], {}
                tenants, self._tenants = self._tenants, {}
                for piece in pieces(len(id) + len(result) for id, result in results):
                    some = dict(results[piece.start : piece.stop])
                    whose = {id: tenants[id] for id in some if id in tenants}
                    put = self._environment.results.put
                    kept = partial(self._environment.results.put_of, some, whose) if whose else partial(put, some)
                    await self._until_available(kept)
                await self._write(line)
                self._settled(*line.end(), 0)

    async def bury(self) -> None:
        """Writes dead letters for ever, and settles their items. Raises as `run` does."""
        line = self._dying
        while True:
            await line.wake.wait()
            line.wake.clear()
            while line.pending:
                line.begin()
                letters, self._letters = self._letters, []
                no_room: set[str] = set()
                for piece in pieces(LETTER_BYTES + len(letter.payload) for letter in letters):
                    some = letters[piece.start : piece.stop]
                    await self._tell_tries(some)
                    refused = await self._until_kept(partial(self._environment.dead_letters.add, some))
                    no_room.update(refused or ())
                if no_room:
                    self._stay({letter.id: letter for letter in letters if letter.id in no_room})
                await self._write(line)
                self._settled(*line.end(), len(letters) - len(no_room))

    def _stay(self, letters: dict[str, DeadLetter]) -> None:
        """Has items whose letters found no room go back into the queue, as they were before they failed."""
        now = self._clock.monotonic()
        pauses = {id: self.letter_waits.came(id, room_of(letter.kind), now) for id, letter in letters.items()}
        self._letters_wait.set()
        for batch in self._dying.under_way.values():
            for place, each in enumerate(batch.others):
                if (letter := letters.pop(each.id, None)) is not None:
                    failed, crashes = uncharged(letter.outcome, letter.attempts, letter.crashes)
                    batch.others[place] = each._replace(
                        state=State.RETRIABLE_FAILURE if failed else State.NEW,
                        delay=pauses[each.id],
                        attempts=failed,
                        crashes=crashes,
                        reason=f"{each.reason} (it waits for room for its dead letter: `max_dead_letters`)",
                    )
        self._unfit |= letters
        if gone := [self._unfit.pop(id) for id in list(self._unfit)[UNFIT:]]:
            known = {"ids": [each.id for each in gone[:3]], "items": len(gone)}
            log.warning("items failed in their jobs without a dead letter, since there is no room", **known)

    async def look_for_room(self) -> None:
        """Has items go on, for ever, when there is room for their letters."""
        await look_for_room(self._environment.dead_letters, self.letter_waits, self._letters_wait, self._go_on)

    async def _go_on(self, ids: Sequence[str]) -> None:
        if ids and self._unfit:
            over, self._unfit = self._unfit, {}
            self._letters += over.values()
            self._dying.batch(0)  # nothing to settle: letters to be written
            ids = [id for id in ids if id not in over]
        now = self._clock.wall()
        if isinstance(self._source, ReorderingSource):
            for id in ids:
                await self._source.put_first(id, now)

    async def _gather(self) -> None:
        """Lets more come where the rule says so."""
        rest = self._gathering.rest(self._clock.monotonic())
        if rest > 0:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(rest):
                    await self._hurry.wait()

    async def _tell_tries(self, letters: list[DeadLetter]) -> None:
        """Adds to dead letters how the attempts before the last one went, which the queue knows."""
        ids = [letter.id for letter in letters]
        before = await self._until_kept(partial(self._environment.queue.tries, ids))
        for letter in letters:
            letter.tries = added(before.get(letter.id, ()), letter.died_at, letter.outcome, letter.reason)

    async def _write(self, line: _Line) -> None:
        await asyncio.gather(*(self._settle(fence, batch) for fence, batch in line.under_way.items()))

    async def _settle(self, fence: int, batch: _Batch) -> None:
        """Settles the items of one fence that ended; where results of jobs make the write large, in several calls."""
        succeeded = batch.succeeded
        for piece in pieces(SETTLE_BYTES + len(each.result or b"") for each in batch.others):
            others = batch.others[piece.start : piece.stop]
            if self._of_jobs and any(each.result is not None for each in others):
                await self._settle_results(fence, succeeded, others)
            else:
                await self._until_available(partial(self._source.settle, fence, succeeded, others))
            succeeded = []
        if succeeded:
            await self._until_available(partial(self._source.settle, fence, succeeded, []))

    async def _settle_results(self, fence: int, succeeded: Sequence[str], others: Sequence[Settle]) -> None:
        """Settles items of jobs with their results. Items of whose results nothing could be made have failed by that,
        and get their letters."""
        source, told = self._source, None
        if isinstance(source, ResultSource):
            with contextlib.suppress(InvalidRequest):  # a store server of the version before knows no such call
                told = await self._until_available(partial(source.settle_results, fence, succeeded, others))
        if told is None:
            await self._until_available(partial(source.settle, fence, succeeded, others))
        for each in others:
            known = self._of_jobs.pop(each.id, None)
            if told is not None and known is not None and (why := told.unfit.get(each.id)) is not None:
                self._letters.append(letter_of_unfit(*known, self._tailer, why, self._clock.wall()))
                self._dying.batch(fence)  # nothing more to settle: a letter to be written

    async def _until_available(self, call: Callable[[], Awaitable[T]]) -> T:
        return await until_available(call, self._failing, self._pauses)

    async def _until_kept(self, call: Callable[[], Awaitable[T]]) -> T:
        return await until_available(call, self._letters_fail, self._pauses)

    def _letters_fail(self, why: str) -> None:
        self.letters_failing = why
