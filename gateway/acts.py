"""The desk for acts of operators (the audit trail): records each act as it begins and as it ends, and shows them.

An act is carried out even if the store that keeps acts is away, since operators have to act then of all times. So each
act is a line of the log as well.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from ..foundation.clock import Clock
from ..foundation.duties import Duties
from ..model.act import MOST_ACTS, MOST_SHOWN, Act, bounded
from ..model.errors import InvalidRequest, TailraceError, UserError
from ..model.limits import Snapshot
from ..stores.control.control import ActStore
from ..stores.trusted_time import TrustedTime
from ..wire.asker import Asker
from .act_subjects import Subjects
from .rules.act_pages import NOTHING, PAGES, Sum, page_sum, sum_text
from .rules.acts import ACTS, StateBefore, act_of, outcome_of

T = TypeVar("T")
#: The key of an act of several pages: the call, its asker and place, and the caller's own text for it.
Run = tuple[str, ...]

#: Seconds that the store gets to record an act, and seconds between two looks for acts that are too old.
PATIENCE, TIDY_EVERY = 2.0, 3_600.0
#: Seconds between two steps of forgetting old acts, since others write to the store too.
PAUSE = 0.1
#: Seconds within which the next page of an act must come, else it is over; and most acts with pages to come.
BETWEEN_PAGES, GOING_ON = 60.0, 1_000
#: Most acts that one search looks at.
LOOKED_AT = 20 * MOST_SHOWN
#: The outcome of an act whose caller left before it ended.
LEFT = "not known: the caller left before the act ended"

_LOG = logging.getLogger("tailrace.gateway.acts")


@dataclass(slots=True, eq=False)
class _Begun:
    """An act that has begun. `run`: the key of its pages; empty: it is one call. `trouble`: why its last call was not
    answered; `resting`: the timer that ends it if no further page comes."""

    act: Act
    run: Run = ()
    sum: Sum = NOTHING
    trouble: str = ""
    resting: asyncio.TimerHandle | None = None

    def outcome(self, call: str) -> str:
        """The outcome so far, for people."""
        told = sum_text(call, self.sum) if self.sum.pages else ""
        return "; then ".join(filter(None, [told, self.trouble]))


class ActDesk:
    """Answers calls about acts (an ActPort), and records calls that are acts. `known`: the present gates, quotas and
    tokens; `subjects`: all else; `retention`: seconds that an act is kept, by the `trusted` time."""

    def __init__(
        self,
        store: ActStore,
        known: Callable[[], Snapshot],
        subjects: Subjects,
        retention: float,
        clock: Clock,
        trusted: TrustedTime,
        duties: Duties,
    ) -> None:
        self._store = store
        self._trusted = trusted
        self._known = known
        self._subjects = subjects
        self._retention = retention
        self._clock = clock
        self._duties = duties
        self._ending: set[asyncio.Task[None]] = set()
        self._runs: OrderedDict[Run, _Begun] = OrderedDict()  # acts with pages to come, the oldest first
        self._stopped = False

    def start(self) -> None:
        """Begins to forget acts that are too old."""
        self._duties.begin(self._tidy(), "gateway: forgetting old acts")

    async def stop(self) -> None:
        """Ends acts with pages to come, and waits until ended acts are recorded."""
        self._stopped = True
        for begun in list(self._runs.values()):
            self._over(begun)
        if self._ending:
            await asyncio.wait(self._ending, timeout=PATIENCE)

    async def through(
        self, call: str, arguments: Mapping[str, Any], answer: Callable[[], Coroutine[Any, Any, T]], asker: Asker
    ) -> T:
        """Makes a call, and records it if it is an act. Raises the call's own errors."""
        begun = await self._act(call, arguments, asker)
        if begun is None:
            return await answer()
        over, begun.trouble = not begun.run, LEFT
        try:
            value = await answer()
            if call in PAGES:
                begun.sum, begun.trouble = page_sum(call, value, begun.sum), ""
                over = over or not begun.sum.more
            else:
                begun.trouble = outcome_of(call, value)
        except GeneratorExit:  # the process is over in the middle of it: nothing can be written any more
            self._runs.pop(begun.run, None)
            begun.act = begun.act._replace(number=0)
            raise
        except UserError as error:
            over, begun.trouble = True, f"refused: {error}"
            raise
        except Exception as error:
            begun.trouble = f"failed: {error if isinstance(error, TailraceError) else repr(error)}"
            raise
        else:
            return value
        finally:
            begun.act = begun.act._replace(outcome=begun.outcome(call))
            if not over and not self._stopped:
                self._rest(begun)
            elif (task := self._over(begun)) is not None:
                await asyncio.shield(task)

    async def _act(self, call: str, arguments: Mapping[str, Any], asker: Asker) -> _Begun | None:
        """The act of a call: a new one, recorded now, or the one whose next page it is; None: the call is no act."""
        run = (call, *asker, arguments["run"]) if call in PAGES and arguments["run"] else ()
        goes_on = self._runs.get(run)
        if goes_on is not None:
            if goes_on.resting is not None:
                goes_on.resting.cancel()
            return goes_on
        if call not in ACTS:
            return None
        found = await self._subjects.look(call, arguments)
        order = act_of(call, arguments, StateBefore(self._known(), found.subject))
        if order is None:
            return None
        who, before = order.who or asker.who, order.before or found.trouble
        act = bounded(Act(0, 0.0, who, asker.place, order.what, order.on, order.why, before, order.after))
        act = act._replace(at=self._clock.wall())
        _LOG.info("act: %s: %s; by %s, from %s %s", act.what, act.on, act.who or "somebody", act.place, act.after)
        begun = _Begun(act._replace(number=await self._begin(act)), run)
        if run:
            self._runs[run] = begun
            while len(self._runs) > GOING_ON:
                self._over(next(iter(self._runs.values())))
        return begun

    def _rest(self, begun: _Begun) -> None:
        """Starts the timer that ends an act if its next page does not come."""
        loop = asyncio.get_running_loop()
        begun.resting = loop.call_later(BETWEEN_PAGES, self._over, begun)

    def _over(self, begun: _Begun) -> asyncio.Task[None] | None:
        """Ends an act, and begins to record its outcome."""
        if begun.resting is not None:
            begun.resting.cancel()
        if begun.run and self._runs.get(begun.run) is begun:
            del self._runs[begun.run]
        if not begun.act.number:  # it is kept nowhere
            return None
        task = asyncio.create_task(self._end(begun.act), name="gateway: ending an act")
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)
        return task

    async def _begin(self, act: Act) -> int:
        """Records the beginning of an act; returns its number. 0: the store did not record it; the act goes on
        anyway."""
        try:
            async with asyncio.timeout(PATIENCE):
                return await self._store.begin_act(act)
        except (TailraceError, TimeoutError) as error:
            _LOG.error("an act is kept nowhere but in this log (%s): %s", error or "no answer", act)
            return 0

    async def _end(self, act: Act) -> None:
        try:
            async with asyncio.timeout(PATIENCE):
                await self._store.end_act(act.number, bounded(act).outcome)
        except (TailraceError, TimeoutError) as error:
            _LOG.error("how act %d ended is kept nowhere but in this log (%s): %s", act.number, error, act.outcome)

    async def acts(self, who: str = "", what: str = "", on: str = "", before: int = 0, limit: int = 100) -> list[Act]:
        """The newest acts whose texts contain the given ones."""
        if not 0 < limit <= MOST_SHOWN:
            raise InvalidRequest(f"limit is {limit}: expected 1 to {MOST_SHOWN}")
        found: list[Act] = []
        for _ in range(LOOKED_AT // MOST_SHOWN):
            page = await self._store.acts(before, limit if not (who or what or on) else MOST_SHOWN)
            found += [act for act in page if who in act.who and what in act.what and on in act.on]
            if not page or len(found) >= limit or not (who or what or on):
                break
            before = page[-1].number
        return found[:limit]

    async def _tidy(self) -> None:
        while True:
            try:
                more = await self._store.forget_acts(self._trusted.seconds() - self._retention, MOST_ACTS)
            except TailraceError as error:
                _LOG.warning("old acts are not forgotten yet: %s", error)
                more = 0
            await asyncio.sleep(PAUSE if more else TIDY_EVERY)
