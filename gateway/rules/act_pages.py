"""The pages of one act: a redrive or purge of letters goes step by step, and is recorded as one act with their sum."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple


class Sum(NamedTuple):
    """The sum of pages. `seen`: number of letters looked at, `done`: number of those that were moved or deleted;
    `pages`: number of pages answered; `more`: whether there may be more."""

    seen: int = 0
    done: int = 0
    pages: int = 0
    more: bool = False


NOTHING = Sum()


def page_sum(call: str, answer: Any, before: Sum) -> Sum:
    """The sum with one more page."""
    seen, done, more = PAGES[call](answer)
    return Sum(before.seen + seen, before.done + done, before.pages + 1, more)


def sum_text(call: str, found: Sum) -> str:
    """The outcome of the pages so far, for people. Only a call that finds nothing shows that there are no more."""
    more = ", and there may be more" if found.more else ""
    if call == "letters.redrive":
        return f"{found.done} of {found.seen} letters were redriven{more}"
    return f"{found.done} letters were purged{more}"


def _redriven(answer: Any) -> tuple[int, int, bool]:
    return len(answer.letters), sum(bool(letter.workload) for letter in answer.letters), bool(answer.next)


def _purged(answer: Any) -> tuple[int, int, bool]:
    gone = sum(answer.values())
    return gone, gone, bool(gone)


#: Calls that may be repeated page by page in one act, each with the reading of its answer: seen, done, more.
PAGES: Mapping[str, Callable[[Any], tuple[int, int, bool]]] = {"letters.redrive": _redriven, "letters.purge": _purged}
