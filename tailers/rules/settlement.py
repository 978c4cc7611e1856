"""Outcome by family → settlement: how a tailer settles one item that did not plainly succeed.

                 queue                         stream                              ordered (a stream's)
    success      done                          done                                done
    retry        return when the policy says   park when the policy says           hold until then
    … exhausted  dead letter                   dead letter                         dead letter
    fatal        dead letter                   dead letter                         dead letter
    throttled    return after a wait           hold until then (park a long wait)  hold until then
    … by name    return after a wait           hold until then (park above 5 min)  hold until then
    lost         return now                    hand out again from the source, alone if a process died: both
    … crashes    dead letter at max_crashes    dead letter                         dead letter
    held         return now (hand_back.py)     hold until its cell opens           hold until its cell opens
    dropped, expired, cancelled   done         done                                done

A dead letter for which there is no room is none: the item stays in its source (letter_waits.py).

Three counts are kept apart: only running user code spends an attempt, only a process that died adds a crash, and a
throttle adds neither (laws 6 and 2). Total: every outcome of every family has a settlement.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import NamedTuple

from ...model.backoff import doubled
from ...model.outcome import Outcome
from ...model.retry import Retry, delay_after, may_retry, may_retry_crash
from ...model.workload import Ended

#: The wait after a throttle that names none: 1 s, doubling with each throttle in a row, to 5 minutes.
FIRST_THROTTLE = 1.0
LAST_THROTTLE = 300.0
#: A throttled stream item that must wait longer than this leaves memory for the delay service.
LONG_WAIT = 30.0
#: An item that waits at most so long for a closed downstream rests in its source: a stream is not copied (law 7).
CLOSED_WAIT = 300.0


class Family(Enum):
    """The two families of sources; `ORDERED` is a stream's item that later ones of its key wait for: it never leaves
    the stream before it is done or dead."""

    QUEUE = "queue"
    STREAM = "stream"
    ORDERED = "ordered"


class Action(Enum):
    """Ways to settle an item."""

    DONE = "done"  # over: ack, or pass with the frontier
    RETURN = "return"  # back into its queue, due after `delay`
    PARK = "park"  # into the delay service, due after `delay`; then settled
    DEAD = "dead"  # a dead letter; then settled
    AGAIN = "again"  # handed out again from the stream
    HOLD = "hold"  # held by position, not before `delay` has passed


#: Outcomes by the numbers that they have on the wire, which is how they come.
_OUTCOMES = {int(outcome): outcome for outcome in Outcome}
#: An item that was lost goes before others this many times in a row; one that is lost again may be the cause.
FIRST_AGAIN = 5


class History(NamedTuple):
    """The past of an item before this hand-out. `attempt` is the number of this attempt, 1 for the first; `late` is how
    many seconds ago this attempt was due."""

    attempt: int = 1
    crashes: int = 0
    throttles: int = 0
    late: float = 0.0


class Settlement(NamedTuple):
    """An action and its numbers. `failed` attempts, `crashes` and `throttles` are the counts after this end; `delay` is
    in seconds from now."""

    action: Action
    delay: float
    failed: int
    crashes: int
    throttles: int
    reason: str


def settle(  # noqa: PLR0911 - one return per row of the table above
    ended: Ended, family: Family, policy: Retry, history: History, random: Callable[[], float] | None = None
) -> Settlement:
    """The settlement of an item that ended this way."""
    queue = family is Family.QUEUE
    failed, crashes, throttles = history.attempt - 1, history.crashes, history.throttles
    match _OUTCOMES[ended.outcome]:
        case Outcome.RETRY:
            failed += 1
            if not may_retry(policy, failed):
                reason = f"{ended.reason or 'failed'} (attempt {failed} of {policy.max_attempts}, the last)"
                return Settlement(Action.DEAD, 0.0, failed, crashes, 0, reason)
            delay = _retry_delay(ended, policy, failed, history.late, random)
            later = Action.PARK if family is Family.STREAM else Action.RETURN if queue else Action.HOLD
            return Settlement(later, delay, failed, crashes, 0, ended.reason)
        case Outcome.FATAL:
            return Settlement(Action.DEAD, 0.0, failed + 1, crashes, throttles, ended.reason or "fatal")
        case Outcome.THROTTLED:
            delay = ended.after if ended.after is not None else throttle_delay(throttles)
            action = Action.RETURN if queue else Action.HOLD
            if family is Family.STREAM and delay > (CLOSED_WAIT if ended.downstream else LONG_WAIT):
                action = Action.PARK
            return Settlement(action, delay, failed, crashes, throttles + 1, ended.reason)
        case Outcome.LOST:
            crashes += ended.crashed
            if ended.crashed and not may_retry_crash(policy, crashes):
                reason = f"its process died while it ran, {crashes} of {policy.max_crashes} times: {ended.reason}"
                return Settlement(Action.DEAD, 0.0, failed, crashes, throttles, reason.rstrip(": "))
            return Settlement(Action.RETURN if queue else Action.AGAIN, 0.0, failed, crashes, throttles, ended.reason)
        case Outcome.HELD:
            delay = ended.after or 0.0
            return Settlement(Action.RETURN if queue else Action.HOLD, delay, failed, crashes, throttles, ended.reason)
        case Outcome.SUCCESS | Outcome.DROPPED | Outcome.EXPIRED | Outcome.CANCELLED:
            return Settlement(Action.DONE, 0.0, failed, crashes, throttles, ended.reason)


def throttle_delay(throttles: int) -> float:
    """Seconds to wait after a throttle that names no time, when there were `throttles` before it."""
    return doubled(FIRST_THROTTLE, LAST_THROTTLE, throttles)


def _retry_delay(ended: Ended, policy: Retry, failed: int, late: float, random: Callable[[], float] | None) -> float:
    if ended.after is not None:
        return ended.after
    delay = delay_after(policy, failed, random)
    return max(0.0, delay - late) if policy.from_due else delay
