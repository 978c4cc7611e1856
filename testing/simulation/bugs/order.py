"""Mistakes with order, with adoption, with delays, and with a function that is broken."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from ....model.audit import Fate
from ....scheduler.credit import SessionCredits
from ....scheduler.outages import Outages
from ....scheduler.rules.adoption import AdoptedRow
from ....scheduler.unheard import Unheard
from ....tailers import stream_core as stream_core_
from ....tailers.departures import departures as departures_
from ....tailers.departures.departure import copy_of
from ....tailers.departures.expiring import Expiring
from ....tailers.holding import Holding
from ....tailers.ordering import Ordering
from ....tailers.pumps import copy_starter as copy_starter_
from ....tailers.pumps import pump as pump_
from ....tailers.rules import ledger as rules
from ....tailers.rules.deadlines import Deadlines
from ....tailers.rules.held import HeldPositions
from ....tailers.rules.order import Order
from ....tailers.rules.settlement import Family
from ....tailers.takeover.inherited import Inherited
from ..planting import Bug, breaks, bug, instead

# ---- order


@bug
def _two_items_of_a_key_are_out_at_once() -> Bug:
    real = Order.enter

    def enter(self: Order, key: str, position: int, *more: Any) -> bool:
        return real(self, f"{key}{position}", position, *more)

    return instead(Order, "enter", enter)


@bug
def _in_order_what_failed_is_parked() -> Bug:
    return instead(Ordering, "family", lambda self, part, position: Family.STREAM)


@bug
def _a_line_loses_its_second_item() -> Bug:
    real = Order.over

    def over(self: Order, positions: Any) -> Any:
        return [] if len(self._lines) == 1 and self.waiting == 1 else real(self, positions)

    return instead(Order, "over", over)


# ---- priority and deadline


@bug
def _an_item_that_was_lifted_stays_in_its_old_place_too() -> Bug:
    real = HeldPositions._leave

    def leave(self: HeldPositions, position: int) -> None:
        kind = self._where[position]
        real(self, position)
        self._waiting(kind).append(position)

    return instead(HeldPositions, "_leave", leave)


@bug
def _what_expired_is_passed_without_its_letter() -> Bug:
    return instead(Expiring, "end", lambda self, item, settlement: self._departures.end(item, Fate.EXPIRED))


@bug
def _a_parked_item_forgets_its_deadline() -> Bug:
    return instead(departures_, "copy_of", lambda *arguments: replace(copy_of(*arguments), expires_at=0.0))


@bug
def _an_item_that_was_lost_is_over_at_its_deadline_though_it_may_run() -> Bug:
    return instead(Deadlines, "defer", Deadlines.keep)


# ---- adoption


@bug
def _what_was_adopted_is_in_no_order() -> Bug:
    return instead(Ordering, "runs", lambda self, item: True)


@bug
def _heads_do_not_wait_until_what_was_adopted_is_read() -> Bug:
    return instead(Ordering, "shut", lambda self, part, shut: None)


@bug
def _what_was_adopted_behind_another_goes_on() -> Bug:
    real = Ordering.runs

    def runs(self: Ordering, item: Any) -> bool:
        return real(self, item) or True

    return instead(Ordering, "runs", runs)


@bug
def _an_adopted_item_is_forgotten() -> Bug:
    real = Inherited.came

    def came(self: Inherited, outcomes: Any) -> None:
        for number in [*outcomes.succeeded, *outcomes.ended]:
            self.running.discard(number)
        real(self, outcomes)

    return instead(Inherited, "came", came)


@breaks("L12", by="two at once")
def _adoption_without_refusing_the_old_epoch() -> Bug:
    return instead(AdoptedRow, "allows", lambda self, epoch: True)


@breaks("L12", by="unexplained")
def _an_outcome_on_the_wire_goes_to_nobody() -> Bug:
    return instead(Unheard, "take_back", lambda self: [])


# ---- waiting


@bug
def _a_restart_forgets_when_a_throttled_item_is_due() -> Bug:
    return instead(stream_core_, "set_not_before", lambda items: None)


@bug
def _a_restart_forgets_when_a_throttled_copy_is_due() -> Bug:
    real = rules.starts

    def starts(rows: Any, copies: Any, epoch: int, fence: int, now: float) -> Any:
        return real(rows, copies, epoch, fence, float("inf"))

    return instead(copy_starter_, "starts", starts)


@bug
def _a_time_that_passes_wakes_nobody() -> Bug:
    return instead(Holding, "look", lambda self: None)


# ---- a function that is broken


@bug
def _failures_in_an_outage_are_charged() -> Bug:
    return instead(pump_, "settle_in_outage", lambda settlement, ended, family, history: settlement)


@bug
def _a_frozen_function_is_never_tried() -> Bug:
    return instead(Outages, "turn", lambda self, now: None)


@bug
def _a_gate_that_opens_is_not_told() -> Bug:
    real = SessionCredits._closed

    def closed(self: SessionCredits, tailer: Any) -> Any:
        return real(self, tailer) or tailer.closed

    return instead(SessionCredits, "_closed", closed)
