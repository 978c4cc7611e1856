"""Ids and functions in a command on dead letters that have no letter (mostly typing mistakes), and messages for
them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...model.dead_letter import LetterFilter
    from ...wire.ports.letters import LetterPort

#: Letters of one look, and most ids that a message names one by one.
LOOK = 1000
NAMED = 20


async def missing_ids(client: LetterPort, which: LetterFilter) -> list[str]:
    """The ids of a filter for which no letter fits the filter."""
    there: set[str] = set()
    after = 0
    while which.ids:
        letters, _ = await client.dead_letters(which, LOOK, after)
        there.update(letter.id for letter in letters)
        if len(letters) < LOOK:
            break
        after = letters[-1].number
    return [id for id in dict.fromkeys(which.ids) if id not in there]


def of_ids(ids: list[str]) -> list[str]:
    """The messages for ids without a letter."""
    lines = [f"{id}: no dead letter has this id, or the other options leave it out" for id in ids[:NAMED]]
    return lines if len(ids) <= NAMED else [*lines, f"… and {len(ids) - NAMED} more"]


async def of_function(client: LetterPort, which: LetterFilter) -> list[str]:
    """The message for a function without any letters; none: it has some."""
    if not which.function:
        return []
    functions = sorted(each.function for each in (await client.count_dead()).counts)
    if not functions or which.function in functions:
        return []
    return [f"no dead letter is of function {which.function!r}; there are some of {', '.join(functions[:NAMED])}"]
