"""Use of `tailrace dead redrive` where there is no letter: for items of jobs of whose results nothing could be made."""

from __future__ import annotations

from typing import Any, cast

import pytest

from tailrace.gateway.commands.letters import _redrive_lone
from tailrace.model.dead_letter import DeadLetter, LetterFilter
from tailrace.model.workload import Kind
from tailrace.wire.ports.letters import LetterPage, Redriven, RedriveStep

LETTER = DeadLetter("a", "queue", Kind("f"), b"", "fatal", "bad", 1, 0, 1.0, 2.0)


class Gateway:
    """A gateway with a letter of `a`, and an item `b` of a job that failed; `asked` are the ids of redrives."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, ...]] = []

    async def dead_letters(self, which: LetterFilter, limit: int, after: int) -> LetterPage:
        return LetterPage([LETTER] if "a" in which.ids else [], 1)

    async def redrive(self, which: LetterFilter, limit: int = 100, after: int = 0, why: str = "") -> RedriveStep:
        self.asked.append(which.ids)
        return RedriveStep([Redriven("b", "f", "b2")] if "b" in which.ids else [], 0)


@pytest.mark.parametrize(
    ("named", "asked", "left"),
    [
        (("a",), [], ("a",)),
        (("a", "b"), [("b",)], ("a",)),
        (("b",), [("b",)], None),
        (("b", "c"), [("b", "c")], ("c",)),
    ],
)
async def test_what_has_no_letter_is_redriven_and_never_all_letters_for_it(
    named: tuple[str, ...], asked: list[tuple[str, ...]], left: tuple[str, ...] | None
) -> None:
    gateway = Gateway()
    moved: dict[str, int] = {}
    # When ids are named of which some have no letter
    found = await _redrive_lone(cast(Any, gateway), LetterFilter(ids=named, until=9.0), moved, [])
    # Then those are asked for alone, and of letters only what is left is meant: nothing, where that is none
    assert gateway.asked == asked
    assert moved == ({"f": 1} if asked else {})
    assert (None if found is None else found.ids) == left
