"""Orders of operators about replays, kept as rows in a store, where the process that runs the tailer finds them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from ..foundation.clock import SYSTEM_CLOCK, Clock
from ..foundation.logger import Logger
from ..model.backoff import ANSWER, Backoff
from ..model.errors import InvalidRequest, Overloaded
from ..model.overview import ReplayOverview
from ..model.replay import ANSWERED, READING, Progress, Replay, ReplayOrder, ReplayState, asked_for
from ..stores.replays.replays import Replays

#: Seconds that an order waits for a process that runs its tailer: such processes look about once a second, and then ask
#: the source for its positions.
ANSWER_WITHIN = 20.0
#: A limit that means all replays: open ones are bounded, and of the others the store keeps a few.
ALL = 1 << 20
PAUSE, RESUME, CANCEL = "pause", "resume", "cancel"

log = Logger("tailrace.replays")


class ProgressOf(Protocol):
    """Computes the progress of a replay."""

    async def of(self, replay: Replay) -> Progress: ...


class ReplayOrders:
    """Begins replays, lists and changes them. At most `at_once` read their sources at once. `changed` is called after
    each write, so that a process which runs tailers itself need not wait for its next look."""

    def __init__(
        self,
        store: Replays,
        progress: ProgressOf,
        at_once: int,
        changed: Callable[[], None] = lambda: None,
        clock: Clock = SYSTEM_CLOCK,
        answer_within: float = ANSWER_WITHIN,
    ) -> None:
        self._store = store
        self._progress = progress
        self._at_once = at_once
        self._changed = changed
        self._clock = clock
        self._answer_within = answer_within
        self._ordering = asyncio.Lock()  # so that the bound holds

    async def order(self, order: ReplayOrder) -> Progress:
        """Begins a replay, or shows the one that would begin (a dry run). Raises InvalidRequest or Overloaded; nothing
        is begun then."""
        order.check()
        async with self._ordering:
            going = await self._store.list(ALL, going=True)
            if not order.dry_run and sum(_reads(each) for each in going) >= self._at_once:
                raise Overloaded(
                    f"{self._at_once} replays read their sources already: wait for one, cancel one, or raise `replays` "
                    "in gateway.yaml"
                )
            asked = await self._store.add(asked_for(order, self._clock.wall()))
        self._changed()
        answer = await self._answered(asked)
        if answer.state is ReplayState.REFUSED:
            raise InvalidRequest(answer.detail)
        if answer.state is ReplayState.LOOKED:
            return Progress(replace(answer, number=0), {}, "nothing was begun")
        return await self._progress.of(answer)

    async def _answered(self, asked: Replay) -> Replay:
        """Waits for the process that runs the tailer to answer an order; without an answer the order is withdrawn."""
        until, looks = self._clock.monotonic() + self._answer_within, Backoff(*ANSWER)
        while self._clock.monotonic() < until:
            await asyncio.sleep(looks.pause())
            there = await self._store.get(asked.number)
            if there is not None and there.state is not ReplayState.ASKED:
                return there
        nobody = (
            f"no tailer {asked.tailer!r} took up the order within {self._answer_within:g} s, so nothing was begun: "
            "check with `tailrace tailer list` that it runs; a tailer in another process must have the same stores"
        )
        return await self._store.answer(
            replace(asked, state=ReplayState.REFUSED, detail=nobody, ended_at=self._clock.wall())
        )

    async def get(self, number: int) -> Progress:
        """One replay. Raises InvalidRequest for an unknown one."""
        replay = await self._store.get(number)
        if replay is None:
            raise InvalidRequest(f"no replay has the number {number}: `tailrace replay list` shows all")
        return await self._progress.of(replay)

    async def change(self, number: int, what: str) -> Progress:
        """Pauses, resumes or cancels a replay. Raises InvalidRequest where its state does not allow that."""
        states = {PAUSE: ReplayState.PAUSED, RESUME: ReplayState.RUNNING, CANCEL: ReplayState.CANCELLING}
        if what not in states:
            raise InvalidRequest(f"{what!r} is no change of a replay: expected one of {', '.join(states)}")
        before = await self._store.get(number)
        unread = before is not None and before.state is ReplayState.ASKED and what == CANCEL
        wanted = ReplayState.CANCELLED if unread else states[what]
        replay = await self._store.move(number, wanted, self._clock.wall(), {})
        self._changed()
        log.warning("replay changed", replay=replay.name, what=what)
        return await self._progress.of(replay)

    async def overviews(self) -> list[ReplayOverview]:
        """The replays that are not over, for live views and metrics."""
        found = [await self._progress.of(each) for each in await self._store.list(ALL, going=True)]
        return [
            ReplayOverview(each.replay.name, each.replay.tailer, each.replay.state, each.replay.items, each.counts)
            for each in sorted(found, key=lambda each: each.replay.number)
        ]

    async def list(self, limit: int) -> list[Progress]:
        """Replays, the newest first, without those that never began."""
        found = [each for each in await self._store.list(ALL) if each.state not in ANSWERED]
        return [await self._progress.of(each) for each in found[:limit]]


def _reads(replay: Replay) -> bool:
    """Whether a replay reads its source, or will."""
    looks = replay.order is not None and replay.order.dry_run
    return replay.state in READING or (replay.state is ReplayState.ASKED and not looks)
