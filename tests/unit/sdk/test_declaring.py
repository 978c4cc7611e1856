"""Declarations of functions: what may be declared, under which name, and refusals with their reasons."""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any

import pytest

from tailrace.model.errors import DeclarationError, InvalidRequest
from tailrace.model.priority import Priority
from tailrace.model.retry import Retry
from tailrace.sdk.context import Context
from tailrace.sdk.function import Function, function


async def test_a_declared_function_is_called_like_the_original() -> None:
    @function(priority="interactive", timeout="30s", retry=Retry(max_attempts=3))
    async def greet(name: str, times: int = 1) -> str:
        """Says hello.

        More of it.
        """
        return f"hello {name}" * times

    assert await greet("ann") == "hello ann"
    assert greet.spec.name == "greet"
    assert greet.spec.priority is Priority.INTERACTIVE
    assert greet.spec.timeout == 30.0
    assert greet.spec.retry.max_attempts == 3
    assert greet.spec.description == "Says hello."
    assert greet.is_async
    assert greet.__doc__ is not None
    assert list(inspect.signature(greet).parameters) == ["name", "times"]


def test_without_options_the_decorator_needs_no_brackets() -> None:
    @function
    def double(number: int) -> int:
        return number * 2

    assert isinstance(double, Function)
    assert double(2) == 4
    assert not double.is_async
    assert double.spec.pool == "default"


def test_process_isolation_has_a_pool_of_its_own_unless_one_is_named() -> None:
    def crunch() -> None: ...

    assert function(isolation="process")(crunch).spec.pool == "isolated"
    assert function(isolation="process", pool="crunchers")(crunch).spec.pool == "crunchers"


def test_the_context_parameter_is_no_argument() -> None:
    @function
    async def watch(path: str, ctx: Context) -> None: ...

    assert watch.context_parameter == "ctx"
    assert list(watch.parameters) == ["path"]


def test_an_optional_context_counts_too() -> None:
    @function
    async def watch(path: str, ctx: Context | None = None) -> None: ...

    assert watch.context_parameter == "ctx"


def test_a_lambda_needs_a_name() -> None:
    with pytest.raises(DeclarationError, match="lambda has no name"):
        function(lambda: None)
    assert function(name="nothing")(lambda: None).name == "nothing"


def _generator():  # type: ignore[no-untyped-def]
    yield 1


async def _async_generator():  # type: ignore[no-untyped-def]
    yield 1


def _starred(*args: int) -> None: ...


def _positional(number: int, /) -> None: ...


def _two_contexts(a: Context, b: Context) -> None: ...


class _Callable:
    def __call__(self) -> None: ...


@pytest.mark.parametrize(
    ("target", "says"),
    [
        (_generator, "yields"),
        (_async_generator, "yields"),
        (_starred, r"\*args"),
        (_positional, "positional-only"),
        (_two_contexts, "two Context"),
        (_Callable(), "takes a function"),
        (_Callable, "takes a function"),
        (len, "takes a function"),
    ],
)
def test_what_cannot_be_declared_says_why(target: object, says: str) -> None:
    with pytest.raises(DeclarationError, match=says):
        function(target)  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"name": "with space"}, "name 'with space'"),
        ({"name": ""}, "name ''"),
        ({"name": "x" * 201}, "name"),
        ({"priority": "urgent"}, "urgent"),
        ({"timeout": "soon"}, "soon"),
        ({"timeout": 0}, "timeout is 0"),
        ({"timeout": -1}, "-1"),
        ({"isolation": "thread"}, "isolation"),
        ({"retry": 3}, "Retry"),
        ({"pool": "a b"}, "pool"),
    ],
)
def test_options_outside_their_bounds_are_refused(options: dict[str, object], says: str) -> None:
    async def work() -> None: ...

    with pytest.raises(DeclarationError, match=says):
        function(**options)(work)  # type: ignore[call-overload]


def test_a_hint_that_nobody_defines_is_named_when_it_is_first_needed() -> None:
    @function
    async def work(order: Nowhere) -> None: ...  # type: ignore[name-defined]  # noqa: F821

    with pytest.raises(DeclarationError, match=r"'work'.*Nowhere"):
        work.prepared()


def test_a_hint_may_name_a_class_defined_further_down() -> None:
    assert later.arguments.decode(b'{"order": {"number": 1}}') == {"order": Order(1)}


@function
async def later(order: Order) -> None: ...


@dataclasses.dataclass
class Order:
    number: int


def test_a_hint_that_pydantic_cannot_validate_is_refused() -> None:
    with pytest.raises(DeclarationError, match="cannot be validated"):

        @function
        async def work(callback: _Callable) -> None: ...


def test_declaring_twice_is_refused() -> None:
    @function
    async def work() -> None: ...

    with pytest.raises(DeclarationError, match="declared twice"):
        function(work)


def test_a_context_for_tests_has_defaults_and_bounds_its_notes() -> None:
    notes: list[str] = []
    ctx = Context(id="w1", function="work", note=notes.append)
    ctx.progress("x" * 5000)
    assert len(notes[0]) == 1024
    assert ctx.time_left() is None
    assert not ctx.cancelled
    with pytest.raises(InvalidRequest):
        ctx.progress(5)  # type: ignore[arg-type]


def test_the_log_of_a_context_names_function_and_id(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", logger="tailrace.function"):
        Context(id="w1", function="work", attempt=2).log.info("half way")
    assert caplog.records[0].getMessage() == "[work w1] half way"
    assert caplog.records[0].tailrace_attempt == 2  # type: ignore[attr-defined]


def test_the_signs_of_a_downstream_are_declared_with_it() -> None:
    @function(downstreams=["stripe"], throttled_by=[ConnectionError, TimeoutError])
    async def one() -> None: ...

    @function(downstreams=["stripe", "smtp"], throttled_by={"smtp": [ConnectionError]})
    async def two() -> None: ...

    assert list(one.throttled_by) == [(ConnectionError, "stripe"), (TimeoutError, "stripe")]
    assert list(two.throttled_by) == [(ConnectionError, "smtp")]


@pytest.mark.parametrize(
    ("downstreams", "throttled_by", "word"),
    [
        ([], [ConnectionError], "name it in downstreams"),
        (["a", "b"], [ConnectionError], "of several, say which"),
        (["a"], {"b": [ConnectionError]}, "not 'b'"),
        (["a"], ["ConnectionError"], "expected classes of exceptions"),
        (["a"], [ConnectionError()], "expected classes of exceptions"),
        (["a"], ConnectionError, "expected a list"),
        (["a"], {"a": 5}, "expected a list"),
    ],
)
def test_signs_that_fit_no_downstream_are_refused(downstreams: list[str], throttled_by: Any, word: str) -> None:
    with pytest.raises(DeclarationError, match=word):

        @function(downstreams=downstreams, throttled_by=throttled_by)
        async def work() -> None: ...
