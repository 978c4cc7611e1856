"""Mistakes among several of a kind: schedulers that a tailer changes, gateways that hear a submission again, tailers
that live while their stores are put back."""

from __future__ import annotations

import contextlib
from typing import Any

from ....assembly import embedded as embedded_
from ....assembly import heights as heights_
from ....gateway import submission as submission_
from ....model.workload import ref
from ....scheduler.server import SchedulerServer
from ....stores.state import sqlite_restored as restored_
from ....tailers.rules.flight_numbers import OWN, flights_of
from ....tailers.session import SchedulerSession
from ....tailers.takeover import side_sessions as side_sessions_
from ....tailers.takeover import succession as succession_
from ....tailers.takeover.adoption_calls import AdoptionCalls
from ....tailers.takeover.epoch import Epoch
from ....tailers.takeover.inherited import Inherited
from ....tailers.takeover.side_sessions import Side, Sides
from ....wire.session import Dialer
from ..host import here
from ..planting import Bug, breaks, bug, instead

# ---- schedulers


@bug
def _a_session_goes_on_wherever_it_is_known() -> Bug:
    real = Dialer._welcomed

    def welcomed(self: Dialer, reply: Any) -> Any:
        self.peer = reply.welcome.scheduler
        return real(self, reply)

    def known(self: SchedulerServer, hello: Any, end: Any) -> Any:
        hello.ClearField("anew")  # as schedulers of before, which know of no other name
        return real_known(self, hello, end)

    real_known = SchedulerServer._known
    stack = contextlib.ExitStack()
    stack.enter_context(instead(Dialer, "_welcomed", welcomed))
    stack.enter_context(instead(SchedulerServer, "_known", known))
    return stack


@breaks("L12", by="two at once")
def _one_of_several_schedulers_adopts_for_all() -> Bug:
    return instead(succession_, "adopted_by_all", lambda listed, confirmed: bool(confirmed))


def _without_sides(mistake: Bug) -> Bug:
    """Plants a mistake where tailers open no session beside their own to a scheduler that runs what they took over."""

    async def open(self: Sides, row: Any, found: Any, fences: Any) -> None:
        """Opens none."""

    stack = contextlib.ExitStack()
    stack.enter_context(instead(Sides, "open", open))
    stack.enter_context(mistake)
    return stack


@bug
def _what_runs_at_another_scheduler_is_handed_out_at_once() -> Bug:
    real = AdoptionCalls.ask

    async def ask(self: AdoptionCalls, row: Any, but: str, seconds: float) -> Any:
        return [each._replace(until=0.0) for each in await real(self, row, but, seconds)]

    return _without_sides(instead(AdoptionCalls, "ask", ask))


@breaks("L12", by="two at once")
def _the_next_row_does_not_name_who_was_asked() -> Bug:
    return _without_sides(instead(Epoch, "remains", lambda self, scheduler, until: None))


@bug
def _a_side_speaks_of_what_is_not_its_own() -> Bug:
    stack = contextlib.ExitStack()
    stack.enter_context(instead(side_sessions_, "flight_here", lambda side, flight: flight))
    stack.enter_context(instead(side_sessions_, "ref_here", lambda side, ref: ref))
    stack.enter_context(instead(side_sessions_, "flights_of", lambda side, refs: flights_of(OWN, refs)))
    return stack


@bug
def _an_item_runs_again_while_its_side_lives() -> Bug:
    def add(self: Inherited, flights: Any) -> None:
        for each in flights:
            self._fences[each.flight] = each.fence
            self.running.update(ref(each.flight, index) for index in each.positions)

    def accept(self: Inherited, flights: Any, elsewhere: Any) -> None:
        self.clear()
        real(self, flights)
        self._lost.update({spot: until for spot, until in elsewhere.items() if spot not in self._unread})

    real = Inherited.add
    stack = contextlib.ExitStack()
    stack.enter_context(instead(Inherited, "add", add))
    stack.enter_context(instead(Inherited, "accept", accept))
    return stack


@breaks("L12", by="two at once")
def _a_row_forgets_the_scheduler_of_a_side() -> Bug:
    real = Epoch.joined

    def joined(self: Epoch, scheduler: str, side: int = OWN) -> None:
        if side == OWN:
            real(self, scheduler)

    return instead(Epoch, "joined", joined)


@breaks("L1", by="two at once")
def _what_a_lost_side_had_is_handed_out_at_once() -> Bug:
    real = Side.session_lost

    def lost(self: Side, wait: float, unsent: Any) -> None:
        real(self, 0.0, unsent)

    return instead(Side, "session_lost", lost)


@breaks("L12", by="two at once")
def _a_scheduler_confirms_for_the_one_before_it() -> Bug:
    real = SchedulerServer.adopt

    async def adopt(self: SchedulerServer, request: Any) -> Any:
        request.scheduler = self.id
        return await real(self, request)

    return instead(SchedulerServer, "adopt", adopt)


@breaks("L12", by="two at once")
def _a_scheduler_that_was_left_is_not_listed_any_more() -> Bug:
    real = Epoch.left

    def left(self: Epoch, scheduler: str, until: float, side: int = OWN) -> None:
        real(self, scheduler, until, side)
        self._schedulers.pop(scheduler, None)

    return instead(Epoch, "left", left)


@breaks("L12", by="two at once")
def _a_scheduler_that_is_left_again_is_forgotten() -> Bug:
    real = Epoch.joined

    def joined(self: Epoch, scheduler: str, side: int = OWN) -> None:
        self._schedulers.pop(scheduler, None)
        real(self, scheduler, side)

    return instead(Epoch, "joined", joined)


@breaks("L12", by="two at once")
def _a_row_names_the_first_of_its_schedulers_alone() -> Bug:
    real = Epoch.joined

    def joined(self: Epoch, scheduler: str, side: int = OWN) -> None:
        real(self, scheduler if not self._schedulers else next(iter(self._schedulers)))

    stack = contextlib.ExitStack()
    stack.enter_context(instead(Epoch, "joined", joined))
    stack.enter_context(instead(Epoch, "may_push_to", lambda self, scheduler: True))
    return stack


@breaks("L12", by="two at once")
def _a_taker_compares_the_row_as_it_is_by_then() -> Bug:
    async def take(self: Epoch, version: int) -> Any:
        row = await self._ownership.read(self._source, self.row)
        names = tuple(sorted(self._schedulers))
        newest = row.version if row is not None else 0
        return await self._ownership.take(self._source, self.row, self._holder, self._sizes.source, newest, names)

    return instead(Epoch, "_take", take)


@breaks("L1", by="two at once")
def _a_tailer_that_changed_schedulers_forgets_what_it_granted() -> Bug:
    real = SchedulerSession.lost

    def lost(self: SchedulerSession) -> None:
        self._granted_until = 0.0
        real(self)

    return instead(SchedulerSession, "lost", lost)


# ---- stores


@bug
def _owners_go_on_in_a_store_that_was_put_back() -> Bug:
    """Leaves owners alone when their store is opened, and has no scheduler remember better."""
    stack = contextlib.ExitStack()
    stack.enter_context(instead(embedded_, "supersede", lambda connection, wall: None))
    stack.enter_context(instead(heights_, "lacks", lambda opened, at, now, remembered: False))
    return stack


@bug
def _a_copy_from_before_starts_in_a_store_that_was_put_back() -> Bug:
    return instead(restored_, "_bar", lambda connection, epoch, version: None)


# ---- gateways


@bug
def _a_submission_that_comes_again_is_another_item() -> Bug:
    return instead(submission_, "submission_key", lambda token: "")


@bug
def _a_gateway_knows_again_only_what_it_took_itself() -> Bug:
    real = submission_.submission_key

    def submission(token: str) -> str:
        key, host = real(token), here()
        return f"{key} {host.name} {host.incarnation}" if key else ""

    return instead(submission_, "submission_key", submission)
