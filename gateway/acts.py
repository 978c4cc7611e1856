"""The desk for acts of operators: keeps each as it begins and as it ends, and shows them.

What is to be done is done although the store that keeps acts is away: an operator has to act then of all times. So each
act is a line of the log as well.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, TypeVar

from ..foundation.clock import Clock
from ..foundation.duties import Duties
from ..model.act import MOST_ACTS, MOST_SHOWN, Act, bounded
from ..model.errors import InvalidRequest, TailraceError, UserError
from ..model.limits import Snapshot
from ..stores.control.control import ActStore
from ..wire.asking import Asker
from .rules.acts import PAGED, act_of, outcome_of

T = TypeVar("T")

#: Seconds that the store gets to take an act, and between two looks for acts that are too old.
PATIENCE, TIDY_EVERY = 2.0, 3_600.0
#: Seconds between two steps of that: others write there too.
PAUSE = 0.1
#: Seconds within which the next page of an act is one with it, and acts that are remembered for that.
PAGES, REMEMBERED = 60.0, 1_000
#: Acts that one question looks at.
LOOKED_AT = 20 * MOST_SHOWN
#: How an act ended of which nobody can say more.
LEFT = "it is not known: whoever asked left before it ended"

_LOG = logging.getLogger("tailrace.gateway.acts")


class ActDesk:
    """An ActPort, and what calls that are acts go through. `known`: what stands now; `retention`: seconds that an act
    is kept."""

    def __init__(
        self, store: ActStore, known: Callable[[], Snapshot], retention: float, clock: Clock, duties: Duties
    ) -> None:
        self._store = store
        self._known = known
        self._retention = retention
        self._clock = clock
        self._duties = duties
        self._ending: set[asyncio.Task[None]] = set()
        self._pages: OrderedDict[Act, float] = OrderedDict()  # acts that have pages, without their moments → when

    def start(self) -> None:
        """Forgets from now on what is too old."""
        self._duties.begin(self._tidy(), "gateway: forgetting old acts")

    async def stop(self) -> None:
        """Waits until what has ended is written."""
        if self._ending:
            await asyncio.wait(self._ending, timeout=PATIENCE)

    async def through(
        self, call: str, arguments: Mapping[str, Any], answer: Callable[[], Coroutine[Any, Any, T]], asker: Asker
    ) -> T:
        """Makes a call, and keeps it as an act if it is one. Raises what the call raises."""
        order = act_of(call, arguments, self._known())
        if order is None:
            return await answer()
        who = order.who or asker.who
        act = bounded(Act(0, 0.0, who, asker.place, order.what, order.on, order.why, order.before, order.after))
        if call in PAGED and self._goes_on(act):
            return await answer()
        act = act._replace(at=self._clock.wall())
        _LOG.info("act: %s: %s; by %s, from %s %s", act.what, act.on, act.who or "somebody", act.place, act.after)
        number, outcome = await self._begin(act), LEFT
        try:
            value = await answer()
            outcome = outcome_of(call, value)
        except GeneratorExit:  # the process is over in the middle of it: nothing can be written any more
            number = 0
            raise
        except UserError as error:
            outcome = f"refused: {error}"
            raise
        except Exception as error:
            outcome = f"failed: {error if isinstance(error, TailraceError) else repr(error)}"
            raise
        else:
            return value
        finally:
            if number:
                ended = act._replace(number=number, outcome=outcome)
                task = asyncio.create_task(self._end(ended), name="gateway: ending an act")
                self._ending.add(task)
                task.add_done_callback(self._ending.discard)
                await asyncio.shield(task)

    def _goes_on(self, act: Act) -> bool:
        """Whether it is the next page of an act that was begun just now."""
        now = self._clock.monotonic()
        goes_on = now - self._pages.pop(act, now - 2 * PAGES) < PAGES
        self._pages[act] = now
        while len(self._pages) > REMEMBERED:
            self._pages.popitem(last=False)
        return goes_on

    async def _begin(self, act: Act) -> int:
        """Its number; 0: the store does not take it, and that is no reason not to act."""
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
        """The newest acts of which these texts hold the given ones."""
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
                more = await self._store.forget_acts(self._clock.wall() - self._retention, MOST_ACTS)
            except TailraceError as error:
                _LOG.warning("old acts are not forgotten yet: %s", error)
                more = 0
            await asyncio.sleep(PAUSE if more else TIDY_EVERY)
