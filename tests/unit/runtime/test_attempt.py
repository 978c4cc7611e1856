"""One assignment → one outcome, for anything that a function raises or returns."""

from __future__ import annotations

import asyncio
import errno
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.model.errors import Fatal, InvalidPayload, RetryLater, Throttled
from tailrace.model.outcome import TERMINAL, Outcome
from tailrace.model.units import LONGEST
from tailrace.runtime import frames
from tailrace.runtime.frames import Done, Frames, row_of
from tailrace.runtime.rules import attempt
from tailrace.runtime.rules.attempt import REASON_LENGTH, Stop


def test_a_refused_allocation_names_the_bound_where_there_is_one() -> None:
    bound = "1 GiB (quarantine_memory)"
    wrapped = ValueError("no page")
    wrapped.__cause__ = OSError(errno.ENOMEM, "Cannot allocate memory")
    for error in (MemoryError(), wrapped):
        ended = attempt.raised(error, bound=bound)
        assert ended.outcome == Outcome.RETRY
        assert ended.reason.startswith(f"out of memory, it may have {bound}: {type(error).__name__}")
        assert "bound" not in attempt.raised(error).reason
    assert attempt.raised(ValueError("x"), bound=bound).reason == "ValueError: x"
    # What the function says on purpose is heard, and so is a stop
    assert attempt.raised(Fatal("never"), bound=bound).outcome == Outcome.FATAL
    assert attempt.raised(MemoryError(), Stop.LEASE, bound=bound).outcome == Outcome.LOST


def test_causes_that_go_in_a_circle_are_looked_at_but_not_for_ever() -> None:
    first, second = ValueError("1"), ValueError("2")
    first.__cause__, second.__cause__ = second, first
    assert not attempt.out_of_memory(first)


def test_nothing_to_say_is_plain_success() -> None:
    assert attempt.returned(b"", 10) is None


def test_a_return_value_is_kept_up_to_its_limit() -> None:
    kept = attempt.returned(b"x" * 10, 10)
    assert kept is not None
    assert (kept.outcome, kept.result) == (Outcome.SUCCESS, b"x" * 10)
    refused = attempt.returned(b"x" * 11, 10)
    assert refused is not None
    assert (refused.outcome, refused.result) == (Outcome.FATAL, None)
    assert "11 bytes" in refused.reason
    # And it says what to do about it before somebody redrives it
    assert "`result_bytes` in worker.yaml" in refused.reason and "results=False" in refused.reason


@pytest.mark.parametrize(
    ("error", "outcome", "after", "reason"),
    [
        (RetryLater("busy", after="5m"), Outcome.RETRY, 300.0, "busy"),
        (RetryLater(), Outcome.RETRY, None, "the function raised RetryLater"),
        (RetryLater("busy", after=-1), Outcome.RETRY, None, "busy (-1 is not a duration"),
        (Fatal("never"), Outcome.FATAL, None, "never"),
        (Throttled(downstream="api"), Outcome.THROTTLED, None, "throttled by api"),
        (Throttled("wait", retry_after=3), Outcome.THROTTLED, 3.0, "wait"),
        (InvalidPayload("argument 'a' is missing"), Outcome.FATAL, None, "argument 'a' is missing"),
        (ValueError("x"), Outcome.RETRY, None, "ValueError: x"),
        (SystemExit(1), Outcome.RETRY, None, "SystemExit: 1"),
        (KeyboardInterrupt(), Outcome.RETRY, None, "KeyboardInterrupt"),
        (GeneratorExit(), Outcome.RETRY, None, "GeneratorExit"),
        (ExceptionGroup("several", [ValueError("x")]), Outcome.RETRY, None, "ExceptionGroup: several (1 sub-"),
    ],
)
def test_what_is_raised(error: BaseException, outcome: Outcome, after: float | None, reason: str) -> None:
    ended = attempt.raised(error)
    assert (ended.outcome, ended.after) == (outcome, after)
    assert ended.reason.startswith(reason)
    assert ended.asked == isinstance(error, RetryLater) == frames.ended_of(row_of(1, ended)).asked


@pytest.mark.parametrize(
    ("stop", "outcome"),
    [
        (Stop.CANCELLED, Outcome.CANCELLED),
        (Stop.LEASE, Outcome.LOST),
        (Stop.DRAIN, Outcome.LOST),
        (Stop.TIMEOUT, Outcome.RETRY),
    ],
)
def test_what_we_stopped_ends_by_why_we_stopped_it(stop: Stop, outcome: Outcome) -> None:
    ended = attempt.raised(RuntimeError("on the way out"), stop, 30.0)
    assert ended.outcome == outcome
    assert not ended.crashed


def test_a_signal_raised_while_stopping_is_heard() -> None:
    assert attempt.raised(Fatal("never"), Stop.TIMEOUT, 1.0).outcome == Outcome.FATAL


def test_a_timeout_says_how_long_it_was() -> None:
    assert attempt.timed_out(30.0).reason == "timed out after 30s"


@given(st.sampled_from([stop for stop in Stop if stop]))
def test_what_never_started_spends_nothing(stop: Stop) -> None:
    assert attempt.unstarted(stop).outcome in (Outcome.HELD, Outcome.CANCELLED)


def _raise_deep(depth: int, text: str) -> None:
    if depth:
        _raise_deep(depth - 1, text)
    raise ValueError(text)


@given(st.integers(0, 400), st.text(max_size=5000))
def test_reasons_are_bounded_and_end_with_where_it_happened(depth: int, text: str) -> None:
    try:
        _raise_deep(depth, text)
    except ValueError as error:
        ended = attempt.raised(error)
    assert len(ended.reason) <= REASON_LENGTH
    assert ended.outcome not in TERMINAL
    assert "in _raise_deep" in ended.reason


#: Texts with halves of surrogate pairs in them, which `st.text()` never makes.
TEXTS = st.text(st.characters(codec=None, exclude_categories=()), max_size=40)


class _Text(str):
    """A text that is no `str`, and answers nothing."""

    def __len__(self) -> int:
        raise SystemExit

    def __getitem__(self, index: Any) -> str:
        raise SystemExit

    def encode(self, *_: Any) -> bytes:
        raise SystemExit


def _hostile(base: type[BaseException], answer: Any) -> type[BaseException]:
    """A class of exceptions of which everything that can be asked is answered like this: returned, or raised."""

    def answers(self: Any, *_: Any) -> Any:
        if isinstance(answer, type) and issubclass(answer, BaseException):
            raise answer
        return answer

    names = ("__str__", "__repr__", "__eq__", "__bool__", "__hash__", "__reduce__", "__format__", "__len__")
    asked = ("__class__", "__traceback__", "__cause__", "__context__", "reason", "after", "retry_after", "errno")

    def ignores(self: Any, _: Any) -> None: ...

    members = dict.fromkeys(names, answers) | {name: property(answers, ignores) for name in asked}
    return type("Hostile", (base,), {**members, "__init__": answers if answer is None else lambda self: None})


BASES: list[type[BaseException]] = [
    *(Fatal, RetryLater, Throttled, InvalidPayload, ValueError, KeyError, OSError, MemoryError, SystemExit),
    *(KeyboardInterrupt, GeneratorExit, StopIteration, StopAsyncIteration, asyncio.CancelledError, BaseException),
]
ANSWERS = st.one_of(
    st.sampled_from([RuntimeError, KeyboardInterrupt, SystemExit, RecursionError, None, 0, 10**5000, object(), b"x"]),
    TEXTS,
    TEXTS.map(_Text),
    st.floats(),
    st.integers(),
)


@given(st.sampled_from(BASES), ANSWERS, st.sampled_from([*Stop]), st.sampled_from(["", "1 GiB"]))
def test_whatever_an_exception_answers_it_is_one_end_that_can_be_sent(
    base: type[BaseException], answer: Any, stop: Stop, bound: str
) -> None:
    # Given an exception of any class, that answers anything or raises
    try:
        raise _hostile(base, answer)()
    except BaseException as error:
        # When its run is classified
        ended = attempt.raised(error, stop, 1.0, bound)
    # Then it is told by its class, and every column of its row can be written
    expected = {Fatal: Outcome.FATAL, InvalidPayload: Outcome.FATAL, Throttled: Outcome.THROTTLED}
    if base in expected:
        assert ended.outcome == expected[base]
    elif base is RetryLater or stop in (Stop.NONE, Stop.TIMEOUT):
        assert ended.outcome == Outcome.RETRY
    frame = frames.encode(Done([], [row_of(1, ended)]))
    (read,) = Frames(Done).feed(frame)
    assert read.ended == [row_of(1, ended)]
    assert type(ended.reason) is str
    assert len(ended.reason) <= REASON_LENGTH
    assert ended.after is None or 0 <= ended.after <= LONGEST


@given(TEXTS, TEXTS | TEXTS.map(_Text) | st.builds(ValueError, TEXTS) | st.none() | st.integers())
def test_a_reason_says_what_was_given_as_far_as_it_can_be_written(text: str, reason: Any) -> None:
    assert attempt.raised(ValueError(text)).reason.startswith("ValueError")
    said = attempt.raised(Fatal(reason)).reason
    said.encode()
    if type(reason) is str and reason and reason.isprintable() and reason.isascii():
        assert said == reason


@given(st.lists(TEXTS, max_size=5), st.integers(0, 4))
def test_one_row_that_cannot_be_written_costs_itself_alone(reasons: list[str], bad: int) -> None:
    # Given rows that were not made plain, and one that no encoder takes
    rows: list[Any] = [(key, 2, reason, None, None, "", "", "", (), False, False) for key, reason in enumerate(reasons)]
    if bad < len(rows):
        rows[bad] = (bad, 2, _Text("x"), 3.5, None, "", "", "", (), False, False)
    # When they leave in one frame
    (read,) = Frames(Done).feed(frames.encode(Done([7], rows)))
    # Then each has its end, and those that could be written their own
    assert read.succeeded == [7]
    assert [row[0] for row in read.ended] == [row[0] for row in rows]
    for sent, row in zip(rows, read.ended, strict=True):
        if type(sent[2]) is str and sent[2].isascii():
            assert row == sent
        else:
            assert row[1] == Outcome.RETRY


@pytest.mark.parametrize(
    ("error", "downstream", "scope"),
    [
        (Throttled(downstream="api"), "api", ""),
        (Throttled(downstream="api", scope="tenant"), "api", "tenant"),
        (Throttled(), "", ""),
        (Throttled(downstream=None, scope=7), "", ""),  # type: ignore[arg-type]
        (Throttled(downstream="x" * 10_000, scope="world"), "x" * attempt.NAME_LENGTH, ""),
    ],
)
def test_a_throttle_carries_its_downstream_and_scope(error: Throttled, downstream: str, scope: str) -> None:
    ended = attempt.raised(error)
    assert len(ended.downstream) <= attempt.NAME_LENGTH and ended.downstream[:190] == downstream[:190]
    assert ended.scope == scope
    assert frames.ended_of(row_of(1, ended)) == ended


def test_errors_that_a_function_declares_are_throttles_and_so_is_its_timeout() -> None:
    signs = ((ConnectionError, "stripe"), (TimeoutError, "smtp"))
    for error, stop, downstream in (
        (ConnectionResetError("away"), Stop.NONE, "stripe"),  # one that inherits from it
        (TimeoutError(), Stop.NONE, "smtp"),
        (asyncio.CancelledError(), Stop.TIMEOUT, "smtp"),
    ):
        ended = attempt.raised(error, stop, 3.0, signs=signs)
        assert (ended.outcome, ended.downstream, ended.after) == (Outcome.THROTTLED, downstream, None)
        assert downstream in ended.reason
    assert "timed out after 3s" in ended.reason
    # What is none of these is what it was, and so is what was stopped from outside
    assert attempt.raised(ValueError("x"), signs=signs).outcome == Outcome.RETRY
    assert attempt.raised(ConnectionError("x"), Stop.LEASE, signs=signs).outcome == Outcome.LOST
    assert attempt.raised(Fatal("x"), signs=((Exception, "d"),)).outcome == Outcome.FATAL


def test_a_class_that_lies_about_its_family_is_asked_nothing() -> None:
    class Lying(type):
        @property
        def __mro__(cls) -> Any:  # type: ignore[override]
            raise RuntimeError("no")

        def __eq__(cls, other: object) -> bool:
            raise RuntimeError("no")

        __hash__ = type.__hash__

    class Bad(Exception, metaclass=Lying):
        pass

    assert attempt.raised(Bad("x"), signs=((ConnectionError, "d"),)).outcome == Outcome.RETRY
