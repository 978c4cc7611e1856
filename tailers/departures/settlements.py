"""Ends of a stream's items that did not plainly succeed: carries out the settlement of each."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from ...model.outcome import Outcome
from ...model.workload import Ended
from ..holding import Holding
from ..ordering import Ordering
from ..position_audit import FATES
from ..rules.hand_back import spaced
from ..rules.settlement import Action, Family, History, Settlement
from ..surroundings import Surroundings
from .departure import EndedItem
from .departures import Departures
from .detaching import Detaching
from .expiring import Expiring

#: Actions on an item that is to be handed out again where it is.
_STAYS = frozenset((Action.AGAIN, Action.HOLD, Action.RETURN))


#: Settlement of an item by its function, its end, its family, its history, and the tailer it first came from.
SettlementRule = Callable[[str, Ended, Family, History, str], Settlement]


class Settlements:
    """Carries out the settlements of one stream tailer. `settlement` is the rule that decides each, see
    Pump.settlement."""

    def __init__(
        self,
        settlement: SettlementRule,
        seen: Surroundings,
        ordering: Ordering,
        departures: Departures,
        holding: Holding,
        expiring: Expiring,
        detaching: Detaching,
    ) -> None:
        self._settlement = settlement
        self._seen = seen
        self._ordering = ordering
        self._departures = departures
        self._holding = holding
        self._expiring = expiring
        self._detaching = detaching

    def ended(self, item: EndedItem) -> None:
        """Settles an item that ended, or is as if it had."""
        if not (self._detaching.some_wait and self._detaching.waits(item)):
            self._settle(item)

    def _settle(self, item: EndedItem) -> None:
        ended, part, position = item.ended, item.partition, item.position
        if ended.outcome == Outcome.SUCCESS and ended.result is not None:
            self._departures.store(item, ended.result)
            self._detaching.over(item.key)
            return
        now, kind = self._seen.wall, item.items.mapped.kinds[item.index]
        detached = self._detaching.knows(part, position)
        if not detached and (ended.outcome == Outcome.HELD or part.hand_backs):
            credit, out_for = self._seen.credit, now - item.pushed_at
            spread = spaced(part.hand_backs, position, kind, ended, credit, out_for, self._seen.monotonic)
            item = item if spread is ended else replace(item, ended=spread)
        former, history = item.former, item.history(now)
        family = self._ordering.family(part, position) if part.order or part.redriven else Family.STREAM
        origin = "" if former is None else former.tailer
        settlement = self._settlement(kind.function, item.ended, family, history, origin)
        if detached:
            self._detached(item, settlement, history, now)
        else:
            self._leave(item, settlement, history, now)
        item.items.batch.payloads[item.index] = b""

    def _detached(self, item: EndedItem, settlement: Settlement, history: History, now: float) -> None:
        stays = settlement.action in _STAYS
        if stays or (settlement.action is not Action.DONE and self._detaching.is_bare(item)):
            self._detaching.again(item, settlement)
        else:
            self._leave(item, settlement, history, now)
        self._detaching.over(item.key)

    def _leave(self, item: EndedItem, settlement: Settlement, history: History, now: float) -> None:
        part, ended = item.partition, item.ended
        match settlement.action:
            case Action.PARK:
                self._departures.park(item, settlement, now)
            case Action.DEAD:
                bound = self._detaching.knows(part, item.position)
                self._departures.bury(item, settlement, now, stays=None if bound else item.alone())
            case Action.AGAIN | Action.HOLD | Action.RETURN:
                part.returned(item.position, settlement)
                not_before = self._seen.monotonic + settlement.delay if settlement.delay else 0.0
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
