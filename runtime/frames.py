"""Frames between a supervisor and its executors: msgpack columns behind a four-byte length.

Two sockets join them. *Work* is read by the executor's event loop; *control* by a thread of its own, so that code which
blocks the loop does not stop renewals. Items are named by keys: session << 56 | ref, unique within a worker.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from ..model.plain_text import plain
from ..model.workload import UNWRITABLE, Ended, Extra
from .rules.attempt import REASON_LENGTH

SESSION_BITS = 56
REF_MASK = (1 << SESSION_BITS) - 1

_LENGTH = struct.Struct("<I")

#: Downstream, unit, amount.
UsedRow = tuple[str, str, float]
#: key, outcome, reason, after, result, progress, downstream, scope, used, misfit, asked
EndRow = tuple[int, int, str, float | None, bytes | None, str, str, str, tuple[UsedRow, ...], bool, bool]
#: key, headers, crashes, expires_at, progress
ExtraRow = tuple[str, tuple[tuple[str, str], ...], int, float, str]
ROW_KEY: Final = 0
HEADERS: Final = 1
EXPIRES_AT: Final = 3


class ExecutorSetup(msgspec.Struct, array_like=True, tag="setup"):
    """The first frame to an executor: the functions to load, and its bounds. `memory` is in bytes (0: unbounded),
    `memory_from` the setting it comes from; `places` are the object stores that may be opened (`Place.reveal`)."""

    modules: list[str]
    path: list[str]
    functions: list[str]
    slots: int
    threads: int
    result_bytes: int
    timeout_grace: float
    block_limit: float
    memory: int = 0
    memory_from: str = ""
    places: list[str] = []
    parents: int = 0  # runs that may wait for other work at once
    timed: bool = False  # somebody wants to know how long runs take
    pulse: float = 1.0  # seconds between two pulses of its control thread, at most
    sources: list[tuple[str, str, bool, bytes]] = []  # modules that are not on the disk as they were (kept_sources.py)

    @property
    def cells(self) -> int:
        """Number of cells on the board: one for each run, and for each that takes the place of one that waits, of
        either sort."""
        return self.slots + self.threads + 2 * self.parents


class Assign(msgspec.Struct, array_like=True, tag="assign"):
    """Items for an executor, named first, first + 1, …; `deadline` is absolute CLOCK_MONOTONIC (L6)."""

    number: int
    deadline: float
    first: int
    new_kinds: list[tuple[int, str, int, str, str]]
    kinds: list[int]
    ids: list[str]
    payloads: list[bytes]
    attempts: list[int]
    fences: list[int]
    extras: dict[int, ExtraRow]
    wants_result: bool
    dated: bool  # some of them may expire before they start


class StopItems(msgspec.Struct, array_like=True, tag="stop"):
    """End these items now, for the reason `why` (rules/attempt.Stop)."""

    keys: list[int]
    why: int


class Release(msgspec.Struct, array_like=True, tag="release"):
    """Hand back everything that has not started."""


class Quit(msgspec.Struct, array_like=True, tag="quit"):
    """End the process; nothing is in it."""


class Timer(msgspec.Struct, array_like=True, tag="timer"):
    """The earliest deadline of all items sent up to Assign `number`; 0: there are none. Sent on control."""

    number: int
    deadline: float


class Ready(msgspec.Struct, array_like=True, tag="ready"):
    """The functions are loaded."""


class Failed(msgspec.Struct, array_like=True, tag="failed"):
    """The functions cannot be loaded."""

    message: str


class Done(msgspec.Struct, array_like=True, tag="done"):
    """Ends of one turn of the loop."""

    succeeded: list[int]
    ended: list[EndRow]


class Notes(msgspec.Struct, array_like=True, tag="notes"):
    """The latest progress note of some items."""

    notes: list[tuple[int, str]]


class Waits(msgspec.Struct, array_like=True, tag="waits"):
    """Items that wait for other work from now on, and those that go on."""

    waits: list[int]
    goes_on: list[int]


class RunTimes(msgspec.Struct, array_like=True, tag="times"):
    """Run times since the last such frame: of each function and outcome the counts by bucket, their sum, and
    by bucket an example of a sampled trace."""

    rows: list[tuple[str, int, list[int], float, dict[int, tuple[str, float, float]]]]


class Dying(msgspec.Struct, array_like=True, tag="dying"):
    """The last words of a process that ends itself, on control: why, and the item that caused it; or, where nobody can
    tell which item did, `what` happened to the process. With them go ends that were not reported yet."""

    why: str
    culprit: EndRow | None
    succeeded: list[int]
    ended: list[EndRow]
    what: str = ""


ToExecutor = ExecutorSetup | Assign | StopItems | Release | Quit | Timer
ToSupervisor = Ready | Failed | Done | Notes | Waits | RunTimes | Dying

_encoder = msgspec.msgpack.Encoder()


def encode(frame: ToExecutor | ToSupervisor) -> bytes:
    """A frame with its length. An executor's words always get through: a row that cannot be written is replaced by one
    that says so."""
    try:
        body = _encoder.encode(frame)
    except (TypeError, ValueError, OverflowError):
        body = _encoder.encode(_writable(frame))
    return _LENGTH.pack(len(body)) + body


def _writable(frame: ToExecutor | ToSupervisor) -> ToExecutor | ToSupervisor:
    match frame:
        case Done():
            return Done(frame.succeeded, _writable_ends(frame.ended))
        case Notes():
            return Notes([note for note in frame.notes if _can_be_written(note)])
        case Dying():
            culprit = [frame.culprit] if frame.culprit is not None else []
            row = next(iter(_writable_ends(culprit)), None)
            return Dying(plain(frame.why, REASON_LENGTH), row, frame.succeeded, _writable_ends(frame.ended), frame.what)
        case Failed():
            return Failed(plain(frame.message, REASON_LENGTH))
    return frame


def _writable_ends(rows: list[EndRow]) -> list[EndRow]:
    return [row if _can_be_written(row) else row_of(row[ROW_KEY], UNWRITABLE) for row in rows]


def _can_be_written(row: Any) -> bool:
    try:
        _encoder.encode(row)
    except (TypeError, ValueError, OverflowError):
        return False
    return True


class Frames:
    """Makes frames of bytes as they come. Invariant: between calls `_buffer` holds less than one whole frame, and only
    bytes that begin as a frame does: else it would wait for an end that never comes. Raises the decoder's errors, or
    ValueError."""

    def __init__(self, kind: Any) -> None:
        self._decode = msgspec.msgpack.Decoder(kind).decode
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[Any]:
        """Yields the frames that are complete now."""
        buffer = self._buffer
        buffer += data
        start = 0
        try:
            while len(buffer) - start >= 4:
                (length,) = _LENGTH.unpack_from(buffer, start)
                end = start + 4 + length
                if end > len(buffer):
                    if not _begins(buffer[start + 4 : start + 6]):
                        raise ValueError("it does not begin as a frame does")
                    break
                body = bytes(buffer[start + 4 : end])
                start = end
                yield self._decode(body)
        finally:
            del buffer[:start]


def _begins(body: bytearray) -> bool:
    """Whether it may be the beginning of a frame: a short array of which the first is a short text, its tag."""
    return all(byte & mask == kind for byte, mask, kind in zip(body, (0xF0, 0xE0), (0x90, 0xA0), strict=False))


def row_of(key: int, ended: Ended) -> EndRow:
    """The row of an end, as it travels."""
    e = ended
    ended_as = (int(e.outcome), e.reason, e.after, e.result, e.progress, e.downstream, e.scope, e.used)
    return (key, *ended_as, e.misfit, e.asked)


def ended_of(row: EndRow) -> Ended:
    """The end in a row: the inverse of `row_of`."""
    _, outcome, reason, after, result, progress, downstream, scope, used, misfit, asked = row
    return Ended(outcome, reason, after, result, False, progress, None, downstream, scope, used, misfit, asked)


def extra_row(extra: Extra) -> ExtraRow:
    """The row of an item's extra, as it travels, without `alone`, which only scheduling needs."""
    return (extra.key, extra.headers, extra.crashes, extra.expires_at, extra.progress)
