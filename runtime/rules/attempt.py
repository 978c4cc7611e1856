"""One assignment → one outcome: THE classification of how a run ended (Oban's executor: perform, normalise, report).

| what the function did                        | outcome   | attempt spent |
|----------------------------------------------|-----------|---------------|
| returned, and the value can be kept          | success   | -             |
| returned what is not JSON, or is too large   | fatal     | -             |
| raised RetryLater                            | retry     | yes           |
| raised Fatal, or its payload does not fit    | fatal     | -             |
| raised Throttled                             | throttled | no            |
| ran past its timeout                         | retry     | yes           |
| was cancelled by its owner                   | cancelled | -             |
| was stopped because its lease or worker ends | lost      | no            |
| found no memory left below its process's bound | retry   | yes           |
| raised anything else, whatever it is         | retry     | yes           |
"""

from __future__ import annotations

import errno
from enum import IntEnum
from types import TracebackType

from ...sdk.model.errors import Fatal, InvalidPayload, InvalidRequest, RetryLater, Throttled
from ...sdk.model.outcome import Outcome
from ...sdk.model.units import duration_text, seconds
from ...sdk.model.workload import Ended

#: A reason is cut at this many characters; the traceback's tail shows this many frames, innermost last.
REASON_LENGTH = 2048
TAIL_FRAMES = 5
TEXT_LENGTH = 1024
#: Causes of an exception that are looked at.
CAUSES = 8


class Stop(IntEnum):
    """Why a run was stopped from outside. The numbers travel between supervisor and executor."""

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
        return Ended(Outcome.FATAL, f"the return value has {len(result)} bytes, more than the {limit} that are kept")
    return Ended(Outcome.SUCCESS, result=result)


def raised(error: BaseException, stop: Stop = Stop.NONE, timeout: float | None = None, bound: str = "") -> Ended:
    """The end of a run that raised. `stop` says whether we asked it to: then that is why it ended, whatever it raised
    on the way out, except that a signal it raised on purpose is heard. `bound` says how much memory it may have, when
    that is bounded, and where that is set."""
    match error:
        case Fatal():
            return Ended(Outcome.FATAL, _bounded(error.reason or "the function raised Fatal"))
        case InvalidPayload():
            return Ended(Outcome.FATAL, _bounded(_text(error)))
        case RetryLater():
            after, complaint = _after(error.after)
            return Ended(Outcome.RETRY, _bounded((error.reason or "the function raised RetryLater") + complaint), after)
        case Throttled():
            after, complaint = _after(error.retry_after)
            return Ended(Outcome.THROTTLED, _bounded(error.reason + complaint), after)
    if stop is not Stop.NONE:
        return stopped(stop, timeout)
    where = f"out of memory, it may have {bound}: " if bound and out_of_memory(error) else ""
    return Ended(Outcome.RETRY, _bounded(f"{where}{_headline(error)}{_tail(error.__traceback__)}"))


def out_of_memory(error: BaseException) -> bool:
    """Whether an allocation that was refused is what it raised, or what made it raise."""
    cause: BaseException | None = error
    for _ in range(CAUSES):
        if cause is None:
            return False
        if isinstance(cause, MemoryError) or (isinstance(cause, OSError) and cause.errno == errno.ENOMEM):
            return True
        cause = cause.__cause__ or cause.__context__
    return False


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
    """The end of a run that kept its event loop from turning."""
    return Ended(
        Outcome.RETRY,
        f"blocked the event loop for {duration_text(limit)}: use await, declare it def, or isolation='process'",
    )


def _headline(error: BaseException) -> str:
    kind = type(error)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    text = _text(error)
    return f"{name}: {text}" if text else name


def _text(error: BaseException) -> str:
    try:
        return str(error)[:TEXT_LENGTH]
    except Exception:  # a __str__ that raises must not turn one failure into another
        return "(its text cannot be shown)"


def _tail(trace: TracebackType | None) -> str:
    """The innermost frames as `file:line in function`: no source is read, so a storm of failures stays cheap."""
    frames: list[str] = []
    while trace is not None:
        code = trace.tb_frame.f_code
        frames.append(f"\n  at {code.co_filename[-100:]}:{trace.tb_lineno} in {code.co_name}")
        if len(frames) > 256:
            del frames[:-TAIL_FRAMES]
        trace = trace.tb_next
    return "".join(frames[1:][-TAIL_FRAMES:])  # the first frame is the executor's own


def _after(value: float | str | None) -> tuple[float | None, str]:
    if value is None:
        return None, ""
    try:
        return seconds(value), ""
    except InvalidRequest as error:
        return None, f" ({str(error)[:200]}; the retry policy decides)"


def _bounded(text: str) -> str:
    return text if len(text) <= REASON_LENGTH else f"{text[: REASON_LENGTH - 1]}…"
