"""One assignment → one outcome: THE classification of how a run ended (Oban's executor: perform, normalise, report).

| the function                                 | outcome   | attempt spent |
|----------------------------------------------|-----------|---------------|
| returned, and the value can be kept          | success   | -             |
| returned no JSON, or too large a value       | fatal     | -             |
| raised RetryLater                            | retry     | yes           |
| raised Fatal, or its payload does not fit    | fatal     | -             |
| raised Throttled                             | throttled | no            |
| raised, or ran past its timeout, as its function declared (`throttled_by`) | throttled | no |
| ran past its timeout                         | retry     | yes           |
| was cancelled by its owner                   | cancelled | -             |
| was stopped because its lease or worker ends | lost      | no            |
| found no memory left below its process's bound | retry   | yes           |
| raised anything else                         | retry     | yes           |

An exception is user code: its text, its attributes and its class may raise, lie, or never return. So its type is asked
and not the object, texts are made plain (model/plain_text.py), and nothing here raises. The time that an answer takes
is running time of the item.
"""

from __future__ import annotations

import errno
from collections.abc import Sequence
from enum import IntEnum
from types import TracebackType
from typing import Any

from ...model.errors import Fatal, InvalidPayload, Misfit, RetryLater, Throttled
from ...model.outcome import Outcome
from ...model.plain_text import UNTELLABLE, plain
from ...model.units import duration_text, seconds
from ...model.workload import Ended

#: A reason is cut at this many characters; the traceback's tail shows this many frames, innermost last.
REASON_LENGTH = 2048
TAIL_FRAMES = 5
TEXT_LENGTH = 1024
#: Characters of a name, and of what is wrong with a number.
NAME_LENGTH = 200
#: The one scope that a throttle may have beside the whole downstream.
TENANT = "tenant"
#: Errors that are the sign of a downstream, each with its name.
Signs = Sequence[tuple[type[BaseException], str]]
#: Causes of an exception that are looked at.
CAUSES = 8

# Attributes of every exception, read past its class, whose properties are user code and may raise, or never return.
_traceback: Any = BaseException.__dict__["__traceback__"].__get__
_cause: Any = BaseException.__dict__["__cause__"].__get__
_context: Any = BaseException.__dict__["__context__"].__get__
_ancestors: Any = type.__dict__["__mro__"].__get__
_errno: Any = OSError.__dict__["errno"].__get__


class Stop(IntEnum):
    """Reasons to stop a run from outside. The numbers travel between supervisor and executor."""

    NONE = 0
    CANCELLED = 1  # its owner asked for it
    LEASE = 2  # nobody renews its lease any more
    DRAIN = 3  # the worker ends and the grace is over
    TIMEOUT = 4  # its own timeout


_LOST = {
    Stop.LEASE: "stopped: its lease was not renewed",
    Stop.DRAIN: "stopped: its worker was shut down before it ended",
}


def returned(result: bytes, limit: int) -> Ended | None:
    """The end of a run that returned `result` (JSON; empty: None). None: it plainly succeeded."""
    if not result:
        return None
    if len(result) > limit:
        return Ended(
            Outcome.FATAL,
            f"the return value has {len(result)} bytes, more than the {limit} that are kept. Raise `result_bytes` in "
            "worker.yaml, return a reference to it, or declare the function with results=False; redriving the item "
            "runs it once more",
        )
    return Ended(Outcome.SUCCESS, result=result)


def raised(  # noqa: PLR0911 - one return per row of the table above
    error: BaseException, stop: Stop = Stop.NONE, timeout: float | None = None, bound: str = "", signs: Signs = ()
) -> Ended:
    """The end of a run that raised. `stop` says whether we asked it to: then that is why it ended, except that a signal
    which it raised on purpose is heard. `bound` is the memory that it may have, where that is bounded, and the setting
    that bounds it. `signs`: errors that count as throttled, as its function declared."""
    kind = type(error)  # not isinstance: that asks the object what it is, and it may answer by raising
    if issubclass(kind, Fatal):
        return Ended(Outcome.FATAL, _said(error, "reason") or "the function raised Fatal")
    if issubclass(kind, InvalidPayload):
        return Ended(Outcome.FATAL, plain(error, REASON_LENGTH), misfit=issubclass(kind, Misfit))
    if issubclass(kind, RetryLater):
        after, complaint = _after(error, "after")
        reason = _said(error, "reason") or "the function raised RetryLater"
        return Ended(Outcome.RETRY, plain(reason + complaint, REASON_LENGTH), after, asked=True)
    if issubclass(kind, Throttled):
        after, complaint = _after(error, "retry_after")
        reason = _said(error, "reason") or "the function raised Throttled"
        scope = TENANT if _word(error, "scope") == TENANT else ""
        return throttled(plain(reason + complaint, REASON_LENGTH), after, _word(error, "downstream"), scope)
    if signs and stop in (Stop.NONE, Stop.TIMEOUT):
        ancestors = _ancestors(TimeoutError if stop is Stop.TIMEOUT else kind)
        for sign, downstream in signs:
            if any(each is sign for each in ancestors):  # not `in`: a class may have an __eq__
                said = timed_out(timeout).reason if stop is Stop.TIMEOUT else _headline(error)
                return throttled(f"its function takes it for a throttle by {downstream}: {said}", None, downstream)
    if stop is not Stop.NONE:
        return stopped(stop, timeout)
    where = f"out of memory, it may have {bound}: " if bound and out_of_memory(error) else ""
    return Ended(Outcome.RETRY, plain(f"{where}{_headline(error)}{_tail(error)}", REASON_LENGTH))


def throttled(reason: str, after: float | None, downstream: str = "", scope: str = "") -> Ended:
    """The end of a run that a downstream told to wait."""
    return Ended(Outcome.THROTTLED, reason[:REASON_LENGTH], after, downstream=downstream, scope=scope)


def out_of_memory(error: BaseException) -> bool:
    """Whether a refused allocation is the error that was raised, or its cause."""
    cause: BaseException | None = error
    for _ in range(CAUSES):
        if cause is None:
            return False
        kind = type(cause)
        if issubclass(kind, MemoryError) or (issubclass(kind, OSError) and _errno(cause) == errno.ENOMEM):
            return True
        following = _cause(cause)
        cause = following if following is not None else _context(cause)
    return False


def traceback_of(error: BaseException) -> TracebackType | None:
    """The traceback of an exception, read past whatever its class says of it."""
    found: TracebackType | None = _traceback(error)
    return found


def stopped(stop: Stop, timeout: float | None = None) -> Ended:
    """The end of a run that was stopped from outside."""
    if stop is Stop.CANCELLED:
        return Ended(Outcome.CANCELLED, "cancelled while it ran")
    if stop is Stop.TIMEOUT:
        return timed_out(timeout)
    return Ended(Outcome.LOST, _LOST.get(stop, "stopped"))


def unstarted(stop: Stop) -> Ended:
    """The end of an item that was stopped before it started."""
    if stop is Stop.CANCELLED:
        return Ended(Outcome.CANCELLED, "cancelled before it started")
    return Ended(Outcome.HELD, "handed back before it started")


def timed_out(timeout: float | None) -> Ended:
    """The end of a run that its timeout ended."""
    return Ended(Outcome.RETRY, f"timed out after {duration_text(timeout or 0)}")


def blocked(limit: float) -> Ended:
    """The end of a run that blocked its event loop."""
    return Ended(
        Outcome.RETRY,
        f"blocked the event loop for {duration_text(limit)}: use await, declare it def, or isolation='process'",
    )


def _headline(error: BaseException) -> str:
    text = plain(error, TEXT_LENGTH)
    try:
        kind = type(error)
        name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    except BaseException:  # its class has a class that raises
        name = "an exception"
    name = plain(name, NAME_LENGTH)
    return f"{name}: {text}" if text else name


def _said(error: BaseException, name: str) -> str:
    """The reason that a signal carries; an exception given as the reason is told as if it had been raised."""
    try:
        value: Any = getattr(error, name, None)
        return _headline(value) if issubclass(type(value), BaseException) else plain(value, REASON_LENGTH)
    except BaseException:
        return UNTELLABLE


def _word(error: BaseException, name: str) -> str:
    """A name that a signal carries; empty: it carries none, or something that is no text."""
    try:
        value: Any = getattr(error, name, None)
        return plain(value, NAME_LENGTH) if issubclass(type(value), str) else ""
    except BaseException:
        return ""


def _tail(error: BaseException) -> str:
    """The innermost frames as `file:line in function`: no source is read, so a storm of failures stays cheap."""
    frames: list[str] = []
    trace = traceback_of(error)
    while trace is not None:
        code = trace.tb_frame.f_code
        frames.append(f"\n  at {code.co_filename[-100:]}:{trace.tb_lineno} in {code.co_name}")
        if len(frames) > 256:
            del frames[:-TAIL_FRAMES]
        trace = trace.tb_next
    return "".join(frames[1:][-TAIL_FRAMES:])  # the first frame is the executor's own


def _after(error: BaseException, name: str) -> tuple[float | None, str]:
    """The wait that a signal asks for, and a complaint about it where it is no wait."""
    try:
        value = getattr(error, name, None)
        if value is None:
            return None, ""
        return seconds(plain(value, NAME_LENGTH) if issubclass(type(value), str) else value), ""
    except BaseException as problem:
        return None, f" ({plain(problem, NAME_LENGTH)}; the retry policy decides)"
