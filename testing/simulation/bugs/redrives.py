"""Mistakes of a gateway that redrives dead letters, and of a tailer whose items these are."""

from __future__ import annotations

import uuid
from typing import Any

from ....gateway import dead_letters as desk_
from ....gateway.dead_letters import DeadLetterDesk
from ....model.dead_letter import Moved, Past
from ....tailers.redrives import Redrives
from ....tailers.rules.order import Order
from ..planting import Bug, bug, instead


@bug
def _a_letter_goes_before_its_workload_is_stored() -> Bug:
    real = DeadLetterDesk._submit

    async def submit(self: DeadLetterDesk, letters: Any) -> Any:
        await self._letters.remove([letter.number for letter in letters])
        return await real(self, letters)

    return instead(DeadLetterDesk, "_submit", submit)


@bug
def _a_redrive_that_is_made_again_makes_another_workload() -> Bug:
    return instead(desk_, "token", lambda letter: uuid.uuid4().hex)


@bug
def _a_redrive_does_not_ask_whether_its_workload_has_ended() -> Bug:
    return instead(desk_, "came_back", lambda state: "")


@bug
def _what_is_redriven_forgets_its_past() -> Bug:
    def past(letter: Any) -> Past:
        return Past(letter.tailer, letter.id, letter.first_seen, 1)

    return instead(desk_, "past_of", past)


@bug
def _what_a_redrive_left_in_the_middle_is_not_finished() -> Bug:
    async def finish(self: DeadLetterDesk) -> None:
        """Finishes nothing."""

    return instead(DeadLetterDesk, "_finish", finish)


@bug
def _what_is_redriven_in_a_stream_runs_beside_its_key() -> Bug:
    real = Order.enter

    def enter(self: Order, key: str, position: int, kind: Any, expires_at: float = 0.0) -> bool:
        heads = [head for head, of in self._heads.items() if of == key]
        return any(position < head for head in heads) or real(self, key, position, kind, expires_at)

    return instead(Order, "enter", enter)


@bug
def _what_is_redriven_in_a_stream_has_no_letter_while_it_waits() -> Bug:
    return instead(Moved, "stays", property(lambda self: False))


@bug
def _what_is_redriven_and_adopted_is_not_read_by_its_new_owner() -> Bug:
    async def opened(self: Redrives) -> None:
        """Reads nothing."""

    return instead(Redrives, "opened", opened)
