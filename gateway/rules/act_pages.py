"""The pages of one act: letters are redriven and purged step by step, and told of as one act with their sum."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple


class Sum(NamedTuple):
    """The sum of pages. `seen`: the letters that they were about, `done` those of them that went; `pages`: how many
    were answered; `more`: there may be more of them."""

    seen: int = 0
    done: int = 0
    pages: int = 0
    more: bool = False


NOTHING = Sum()


def page_sum(call: str, answer: Any, before: Sum) -> Sum:
    """The sum with one page more."""
    seen, done, more = PAGES[call](answer)
    return Sum(before.seen + seen, before.done + done, before.pages + 1, more)


def sum_said(call: str, found: Sum) -> str:
    """How it ended, for people. Whether there was more, only a call that finds nothing can say."""
    more = ", and there may be more" if found.more else ""
    if call == "letters.redrive":
        return f"{found.done} of {found.seen} letters were redriven{more}"
    return f"{found.done} letters were purged{more}"


def _redriven(answer: Any) -> tuple[int, int, bool]:
    return len(answer.letters), sum(bool(letter.workload) for letter in answer.letters), bool(answer.next)


def _purged(answer: Any) -> tuple[int, int, bool]:
    gone = sum(answer.values())
    return gone, gone, bool(gone)


#: Calls that may be made again and again for one act.
PAGES: Mapping[str, Callable[[Any], tuple[int, int, bool]]] = {"letters.redrive": _redriven, "letters.purge": _purged}
