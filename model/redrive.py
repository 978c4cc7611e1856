"""Redrive: may a dead letter be redriven, under which token, and what does it bring along. THE rule.

A redriven letter becomes a fresh workload of its function in the queue (a retry is another source): attempts begin
anew, what happened before stays with it. The letter of an item that had a place in a stream's order goes back there:
its tailer hands it out once more, in its key's line, under its own id (`tailers/redrives.py`). One that died again
after too many redrives is refused: a letter that always comes back is a loop, and a loop of letters must end at a
person.
"""

from __future__ import annotations

import hashlib
from typing import NamedTuple

from .claim import State
from .dead_letter import IN_LINE, JOB_ITEM, DeadLetter, Death, Past
from .fence import fence_at
from .workload import Headers

#: Former deaths that are kept, the latest ones, and characters of each one's reason and progress note.
DEATHS_KEPT = 20
REASON_KEPT = 500
NOTE_KEPT = 200
#: The header of a redriven workload with the id that it had at first; the second one: that was an item of a stream.
ORIGIN, STREAM_ORIGIN = "tailrace-origin", "tailrace-stream-origin"
ORIGINS = frozenset((ORIGIN, STREAM_ORIGIN))


class ShownWorkload(NamedTuple):
    """Fields of a workload as its function sees them."""

    origin: str
    fence: int
    headers: Headers


def refusal(letter: DeadLetter, most: int, known: bool) -> str:
    """The reason a letter cannot be redriven; empty: it may go. `most` redrives are allowed; `known`: its function
    is."""
    if not letter.kind.function:
        return "it names no function: mend its source, then purge it"
    if not known:
        return f"no worker has registered the function {letter.kind.function!r}: start one that does, or purge it"
    if letter.redrives >= most:
        return (
            f"it was redriven {letter.redrives} times and died each time (`max_redrives` of the gateway is {most}): "
            "mend the function or the data, or purge it"
        )
    return ""


def came_back(state: State) -> str:
    """The reason a letter cannot be redriven while its workload is in this state of its queue; empty: it may go.

    A letter is durable before its workload ends in the queue. So the tailer that buried it may have died in between:
    then the workload runs once more by itself, and may end otherwise.
    """
    if state < State.SUCCESS:
        return "its workload has not ended in the queue yet: try again in a moment"
    if state in (State.SUCCESS, State.CANCELLED):
        return f"its workload came back by itself after that, and ended as {state.label}: purge the letter"
    return ""


def homeless(letter: DeadLetter) -> str:
    """The reason a letter that no job knows cannot be redriven; empty: it is of no job's item, and may go.

    As a workload of its own it would run outside any job, and once more if its job was tried again meanwhile.
    """
    if JOB_ITEM not in letter.headers:
        return ""
    return (
        "it is an item of a job that is forgotten or deleted, which may have been tried again: purge it, or submit its "
        "payload anew if it is to run once more"
    )


def goes_in_line(letter: DeadLetter) -> bool:
    """Whether its item had a place in a stream's order, and is to wait there again."""
    return letter.position >= 0 and IN_LINE in letter.headers


def token(letter: DeadLetter) -> str:
    """The submission token of a redrive: one death of one workload always gets the same, so that the queue takes it
    once."""
    text = f"redrive {letter.id} {letter.died_at!r}"
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def headers_of(letter: DeadLetter) -> Headers:
    """The headers of the redriven workload: the letter's own, and where it came from at first. A header that says so
    already is believed of a workload that was redriven before, and of no other."""
    own = tuple([each for each in letter.headers if each[0] not in ORIGINS])
    former = [each for each in letter.headers if each[0] in ORIGINS] if letter.past is not None else []
    origin = letter.id if letter.past is None else letter.past.id
    return (*own, *(former[:1] or [(STREAM_ORIGIN if letter.position >= 0 else ORIGIN, origin)]))


def shown(id: str, fence: int, headers: Headers) -> ShownWorkload:
    """The workload as its function sees it: with its first id, and with a fence that can be compared with those that
    its key got where it came from. A function that passes its headers on passes no origin on."""
    own = tuple([each for each in headers if each[0] not in ORIGINS])
    if len(own) == len(headers) or "/" in id:  # a record of a stream may bear any header, and is nobody's redrive
        return ShownWorkload(id, fence, headers)
    name, origin = next(each for each in headers if each[0] in ORIGINS)
    return ShownWorkload(origin, fence_at(fence) if name == STREAM_ORIGIN else fence, own)


def past_of(letter: DeadLetter) -> Past:
    """The past that the redriven workload brings along: the letter's own past and this death."""
    death = Death(
        letter.died_at,
        letter.outcome,
        letter.reason[:REASON_KEPT],
        letter.attempts,
        letter.crashes,
        letter.progress[:NOTE_KEPT],
    )
    before = letter.past
    if before is None:
        return Past(letter.tailer, letter.id, letter.first_seen, 1, (death,))
    deaths = (*before.deaths, death)[-DEATHS_KEPT:]
    return Past(before.tailer, before.id, before.first_seen, before.redrives + 1, deaths)
