"""Ends of a stream's items that did not plainly succeed: carries out the settlement of each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from ...sdk.clock import Clock
from ...sdk.model.outcome import Outcome
from ...sdk.model.workload import Ended
from ..accounts import FATES
from ..hand_out import HandOut
from ..holding import Holding
from ..items import Items
from ..ordering import Ordering
from ..rules.hand_back import spaced
from ..rules.settlement import Action, Family, History, Settlement
from ..session import SchedulerSession
from .departure import Departing, departing
from .departures import Departures
from .detaching import Detaching
from .expiring import Expiring

#: What becomes of an item that is to be handed out again where it is.
_STAYS = frozenset((Action.AGAIN, Action.HOLD, Action.RETURN))


class EndingPump(Protocol):
    """The pump: `settlement` is what becomes of an item, see Pump.settlement."""

    clock: Clock
    session: SchedulerSession

    def settlement(
        self, function: str, ended: Ended, family: Family, history: History, origin: str = ""
    ) -> Settlement: ...


class Ending:
    """Carries out the settlements of one stream tailer."""

    def __init__(
        self,
        owner: EndingPump,
        ordering: Ordering,
        departures: Departures,
        holding: Holding,
        expiring: Expiring,
        detaching: Detaching,
    ) -> None:
        self._owner = owner
        self._clock = owner.clock
        self._ordering = ordering
        self._departures = departures
        self._holding = holding
        self._expiring = expiring
        self._detaching = detaching

    def ended(self, out: HandOut, ends: Mapping[int, Ended]) -> None:
        """Items of a hand-out ended, by their index."""
        now, some_wait = self._clock.wall(), self._detaching.some_wait
        for index, ended in ends.items():
            if not (some_wait and self._detaching.waits(out, index, ended)):
                self._ended(out, index, ended, now)

    def _ended(self, out: HandOut, index: int, ended: Ended, now: float) -> None:
        items: Items = out.place
        if ended.outcome == Outcome.SUCCESS and ended.result is not None:
            item = departing(items, index, out.pushed_at, out.flight.fence, ended)
            self._departures.store(item, ended.result)
            self._detaching.over(item.key)
            return
        part = items.partition if items.parts is None else items.parts[index]
        position, kind = items.batch.positions[index], items.mapped.kinds[index]
        detached = self._detaching.knows(part, position)
        if not detached and (ended.outcome == Outcome.HELD or part.hand_backs):
            credit, out_for = self._owner.session.credit, now - out.pushed_at
            ended = spaced(part.hand_backs, position, kind, ended, credit, out_for, self._clock.monotonic())
        item = departing(items, index, out.pushed_at, out.flight.fence, ended)
        former, history = item.former, item.history(now)
        family = Family.STREAM if part.order is None else self._ordering.family(part, position)
        origin = "" if former is None else former.tailer
        settlement = self._owner.settlement(kind.function, ended, family, history, origin)
        if detached:
            self._detached(item, settlement, history, now)
        else:
            self._leave(item, settlement, history, now)
        out.flight.payloads[index] = b""

    def _detached(self, item: Departing, settlement: Settlement, history: History, now: float) -> None:
        stays = settlement.action in _STAYS
        if stays or (settlement.action is not Action.DONE and self._detaching.is_bare(item)):
            self._detaching.again(item, settlement)
        else:
            self._leave(item, settlement, history, now)
        self._detaching.over(item.key)

    def _leave(self, item: Departing, settlement: Settlement, history: History, now: float) -> None:
        part, ended = item.partition, item.ended
        match settlement.action:
            case Action.PARK:
                self._departures.park(item, settlement, now)
            case Action.DEAD:
                self._departures.bury(item, settlement, now)
            case Action.AGAIN | Action.HOLD | Action.RETURN:
                part.returned(item.position, settlement)
                not_before = self._clock.monotonic() + settlement.delay if settlement.delay else 0.0
                charged = settlement.crashes > history.crashes or settlement.failed >= history.attempt
                if settlement.throttles > history.throttles or (item.former is None and charged):
                    self._departures.count(item, part.troubles[item.position], not_before)
                else:
                    self._holding.hold(item.items, item.index, not_before)
            case Action.DONE if ended.outcome == Outcome.DROPPED:
                self._departures.drop(item)
            case Action.DONE if ended.outcome == Outcome.EXPIRED:
                self._expiring.end(item, settlement)
            case Action.DONE:
                self._departures.end(item, FATES[Outcome(ended.outcome)])
