"""Acts of operators (an audit trail): who changed which thing, from where, why, its state before, and how it ended.

An act is kept as it begins and again as it ends, and neither is changed afterwards.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from .plain_text import plain

#: Acts that are kept, acts of one answer, and acts that are forgotten in one step.
MOST_ACTS, MOST_SHOWN, FORGOTTEN_AT_ONCE = 1_000_000, 1_000, 1_000
#: Characters of who and where, of what it is about, and of a reason or a state.
NAME, SUBJECT, STATE = 200, 400, 4_000
#: The outcome of an act that was done.
DONE = "done"


class Act(NamedTuple):
    """One act. `number`: acts count up, by those who began first; 0: it is not kept yet.

    at       wall clock seconds as it began
    who      who says that it acts, and who that is by a certificate or a token, if one was shown
    place    where that is: an address, or `this machine`
    what     what was done, such as `gate pause`
    on       what it was done to
    why      as the operator says
    before   what was, and `after` what was asked for: JSON, or a sentence
    outcome  `done` or what came of it, or why it was refused; empty: it is not known, since whoever did it ended first
    """

    number: int
    at: float
    who: str
    place: str
    what: str
    on: str = ""
    why: str = ""
    before: str = ""
    after: str = ""
    outcome: str = ""


def bounded(act: Act) -> Act:
    """The act with texts of no more than their lengths, which UTF-8 can write."""
    return act._replace(
        who=plain(act.who, NAME),
        place=plain(act.place, NAME),
        what=plain(act.what, NAME),
        on=plain(act.on, SUBJECT),
        why=plain(act.why, STATE),
        before=plain(act.before, STATE),
        after=plain(act.after, STATE),
        outcome=plain(act.outcome, STATE),
    )


def reason(why: str) -> str:
    """The reason an operator gives, as plain text of bounded length."""
    return plain(why, STATE)


def act_to_text(act: Act) -> str:
    """An act as it rests in a control store, but for its number: what it says, and nothing that it leaves open."""
    return json.dumps({name: value for name, value in act._asdict().items() if value and name != "number"})


def act_from_text(number: int, text: str | bytes, outcome: str = "") -> Act:
    """The inverse of `act_to_text`; what a later version says beside it is left out."""
    data: Mapping[str, Any] = json.loads(text)
    known = {name: value for name, value in data.items() if name in Act._fields}
    said: dict[str, Any] = {"at": 0.0, "who": "", "place": "", "what": ""} | known
    return Act(**(said | {"number": number, "outcome": outcome or said.get("outcome", "")}))
