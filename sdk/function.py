"""Declaring functions: `@tailrace.function` makes a `Function` of an `async def` or a `def`. There is no registry;
a worker collects the `Function` objects of the modules it is given.

Arguments are validated against the function's own type hints, from JSON in one step (pydantic's TypedDict schema yields
the keyword arguments themselves, with no object in between).
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Generic, ParamSpec, TypeVar, overload

from ..model.errors import DeclarationError, InvalidRequest
from ..model.function_spec import DEFAULT_POOL, ISOLATED_POOL, MOST_DOWNSTREAMS, FunctionSpec
from ..model.labels import MOST_LABELS, requirement
from ..model.name import EXPECTED, NAME_LENGTH, RESERVED, is_name
from ..model.priority import DEFAULT_PRIORITY, Priority
from ..model.retry import DEFAULT_RETRY, Retry
from ..model.unit_rate import MOST_UNITS, UnitSource
from ..model.units import seconds
from .context import Context
from .payload import Arguments, RawArguments, TypedArguments

P = ParamSpec("P")
R = TypeVar("R")

ISOLATIONS = ("shared", "process")
#: Estimated use of an item, by unit: a number, or the header or the argument that says it.
Units = Mapping[str, float | Mapping[str, Any]]
#: Errors that blame the one downstream of a function; or a list of errors for each of several downstreams.
ThrottledBy = Sequence[type[BaseException]] | Mapping[str, Sequence[type[BaseException]]]
#: Longest description kept: the first line of the docstring.
DESCRIPTION_LENGTH = 200


class _Plan(typing.NamedTuple):
    """The plan of a function, from its type hints: how arguments are read, and which parameter takes the Context
    (empty: none)."""

    arguments: Arguments
    context: str


class Function(Generic[P, R]):
    """A declared function. Calling it calls the original, so it can be tested like any other.

    spec          the description that a worker announces
    collection    the collection of a submission that names none
    is_async      whether it is an `async def`
    throttled_by  errors that count as throttled, each with the downstream that it blames
    """

    def __init__(
        self,
        call: Callable[P, R],
        spec: FunctionSpec,
        collection: str,
        namespace: Mapping[str, Any],
        throttled_by: Sequence[tuple[type[BaseException], str]] = (),
    ) -> None:
        functools.update_wrapper(self, call)
        self.call = call
        self.spec = spec
        self.collection = collection
        self.throttled_by = throttled_by
        self.is_async = inspect.iscoroutinefunction(call)
        self._signature = inspect.signature(call)
        self._namespace: Mapping[str, Any] = namespace
        self._plan: _Plan | None = None
        _check_parameters(spec.name, self._signature)
        with contextlib.suppress(NameError):  # a class defined further down: looked up again when first needed
            self._plan = self._make_plan()

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.call(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<tailrace function {self.spec.name} ({self.where})>"

    @property
    def name(self) -> str:
        """The name it is registered under."""
        return self.spec.name

    @property
    def where(self) -> str:
        """`module:line` of the original, for messages."""
        code = getattr(inspect.unwrap(self.call), "__code__", None)
        return f"{self.call.__module__}:{code.co_firstlineno if code else '?'}"

    @property
    def arguments(self) -> Arguments:
        """The codec of payloads and keyword arguments. Raises DeclarationError when a type hint cannot be resolved."""
        return self.prepared().arguments

    @property
    def context_parameter(self) -> str:
        """The parameter annotated `tailrace.Context`; empty: none."""
        return self.prepared().context

    @property
    def parameters(self) -> dict[str, inspect.Parameter]:
        """The parameters that a payload may fill: all but the Context."""
        context = self.context_parameter
        return {name: parameter for name, parameter in self._signature.parameters.items() if name != context}

    def announced(self) -> FunctionSpec:
        """The spec with the schema of the arguments, for the registry. Raises DeclarationError as `arguments` does."""
        return replace(self.spec, arguments=self.arguments.schema)

    def prepared(self) -> _Plan:
        """Resolves the type hints now, once. Raises DeclarationError naming the hint that cannot be resolved."""
        if self._plan is None:
            try:
                self._plan = self._make_plan()
            except NameError as error:
                raise DeclarationError(
                    f"function {self.spec.name!r} ({self.where}): a type hint cannot be resolved: {error}. "
                    "Import the name in that module (outside `if TYPE_CHECKING`), or annotate with a known type"
                ) from None
        return self._plan

    def _make_plan(self) -> _Plan:
        try:
            hints = typing.get_type_hints(
                inspect.unwrap(self.call), localns=dict(self._namespace) or None, include_extras=True
            )
        except NameError:
            raise
        except Exception as error:
            raise self._unusable("its type hints cannot be resolved", error) from None
        names = list(self._signature.parameters)
        contexts = [name for name in names if _is_context(hints.get(name))]
        if len(contexts) > 1:
            raise DeclarationError(f"function {self.spec.name!r} ({self.where}) has two Context parameters: keep one")
        filled = [parameter for name, parameter in self._signature.parameters.items() if name not in contexts]
        context = contexts[0] if contexts else ""
        if len(filled) == 1 and hints.get(filled[0].name) is bytes:
            return _Plan(RawArguments(self.spec.name, filled[0].name, _optional(filled[0])), context)
        fields = {
            parameter.name: (hints.get(parameter.name, Any), not _optional(parameter))
            for parameter in filled
            if parameter.kind is not parameter.VAR_KEYWORD
        }
        open_ended = any(parameter.kind is parameter.VAR_KEYWORD for parameter in filled)
        try:
            return _Plan(TypedArguments(self.spec.name, fields, open_ended), context)
        except NameError:
            raise
        except Exception as error:
            raise self._unusable("its arguments cannot be validated", error) from None

    def _unusable(self, what: str, error: Exception) -> DeclarationError:
        first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        return DeclarationError(f"function {self.spec.name!r} ({self.where}): {what}: {first[:300]}")


@overload
def function(call: Callable[P, R], /) -> Function[P, R]: ...


@overload
def function(
    *,
    name: str | None = None,
    priority: str | int | Priority = DEFAULT_PRIORITY,
    timeout: float | str | None = None,
    retry: Retry = DEFAULT_RETRY,
    pool: str = "",
    isolation: str = "shared",
    version: str = "",
    collection: str = "",
    owner: str = "",
    results: bool = True,
    downstreams: Sequence[str] = (),
    throttled_by: ThrottledBy = (),
    units: Units | None = None,
    requires: Sequence[str] = (),
) -> Callable[[Callable[P, R]], Function[P, R]]: ...


def function(
    call: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    priority: str | int | Priority = DEFAULT_PRIORITY,
    timeout: float | str | None = None,
    retry: Retry = DEFAULT_RETRY,
    pool: str = "",
    isolation: str = "shared",
    version: str = "",
    collection: str = "",
    owner: str = "",
    results: bool = True,
    downstreams: Sequence[str] = (),
    throttled_by: ThrottledBy = (),
    units: Units | None = None,
    requires: Sequence[str] = (),
) -> Any:
    """Declares a function that tailrace can run.

    name        unique per worker; default: the function's own
    priority    interactive | user_visible | eventual (default) | reporting, or a level of TAILRACE_PRIORITIES
    timeout     seconds or "30s" for one run; None (default): no limit
    retry       when a failed run is tried again (default: 20 attempts, 5 s doubling up to 6 h)
    pool        name of a pool of executors that run only its functions; default: shared with the others
    isolation   shared (default) | process: each run has a warm process to itself (CPU-bound or untrusted code)
    version     shown beside the name
    collection  the collection of submissions that name none
    owner       team or person to ask about it: shown beside the name, and where a submission is refused
    results     whether its return value is kept (default: yes)
    downstreams names of the services it calls that must not be overloaded (`["stripe"]`): each has one limit for all
                functions that call it
    throttled_by  errors that mean the same as raising `Throttled` (`[ConnectionError]`; TimeoutError: its own timeout
                too), as a list or by downstream (`{"stripe": [ConnectionError]}`)
    units       estimated use of an item, of units that have a rate of their own: `{"tokens": 500}`, or from a header
                (`{"tokens": {"header": "tokens"}}`) or an argument (`{"tokens": {"field": "max_tokens"}}`)
    requires    labels that a worker must have to run it (`["gpu", "python>=3.12"]`); default: any worker runs it

    Raises DeclarationError, which says what is wrong and what is expected.
    """
    if call is not None and not callable(call):
        raise DeclarationError(f"@tailrace.function takes its options by name: name={call!r}, not {call!r}")
    frame = sys._getframe(1)
    # A function declared inside another may use its local classes in hints; a module's own names are found anyway.
    namespace = {} if frame.f_locals is frame.f_globals else dict(frame.f_locals)

    def declare(target: Callable[..., Any]) -> Function[..., Any]:
        _check_callable(target)
        chosen = target.__name__ if name is None else name
        if name is None and chosen == "<lambda>":
            raise DeclarationError("a lambda has no name: give it one with @tailrace.function(name=…)")
        _check_label("name", chosen)
        if chosen.startswith(RESERVED):
            raise DeclarationError(f"name {chosen!r} begins with {RESERVED!r}, as only the platform's own functions do")
        if pool:
            _check_label("pool", pool)
        if collection:
            _check_label("collection", collection)
        if isolation not in ISOLATIONS:
            raise DeclarationError(
                f"function {chosen!r}: isolation is {isolation!r}; expected one of {', '.join(ISOLATIONS)}"
            )
        if not isinstance(retry, Retry):
            raise DeclarationError(f"function {chosen!r}: retry is {retry!r}; expected tailrace.Retry(…)")
        try:
            level = Priority.parse(priority)
            limit = None if timeout is None else seconds(timeout)
        except InvalidRequest as error:
            raise DeclarationError(f"function {chosen!r}: {error}") from None
        if limit == 0:
            raise DeclarationError(f"function {chosen!r}: timeout is 0; expected more, or None for no limit")
        spec = FunctionSpec(
            name=chosen,
            version=str(version),
            priority=level,
            retry=retry,
            timeout=limit,
            pool=pool or (ISOLATED_POOL if isolation == "process" else DEFAULT_POOL),
            isolation=isolation,
            description=_description(target),
            owner=str(owner)[:NAME_LENGTH],
            results=bool(results),
            downstreams=_downstreams(chosen, downstreams),
            units=_unit_sources(chosen, units or {}),
            requires=_requirements(chosen, requires),
        )
        return Function(target, spec, collection, namespace, _signs(spec, throttled_by))

    return declare if call is None else declare(call)


def _downstreams(function: str, names: Sequence[str]) -> tuple[str, ...]:
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise DeclarationError(f"function {function!r}: downstreams is {names!r:.200}; expected a list of names")
    for name in names:
        _check_label("downstream", name)
    if len(names) > MOST_DOWNSTREAMS:
        raise DeclarationError(
            f"function {function!r} names {len(names)} downstreams: at most {MOST_DOWNSTREAMS} are taken"
        )
    return tuple(dict.fromkeys(names))


def _requirements(function: str, requires: Sequence[str]) -> tuple[str, ...]:
    if isinstance(requires, str) or not all(isinstance(each, str) for each in requires):
        raise DeclarationError(f"function {function!r}: requires is {requires!r:.200}; expected a list of requirements")
    if len(requires) > MOST_LABELS:
        raise DeclarationError(
            f"function {function!r} requires {len(requires)} labels: at most {MOST_LABELS} are taken"
        )
    try:
        return tuple(dict.fromkeys(str(requirement(each)) for each in requires))
    except InvalidRequest as error:
        raise DeclarationError(f"function {function!r}: {error}") from None


def _unit_sources(function: str, units: Units) -> tuple[UnitSource, ...]:
    """The sources of estimates by unit, as a FunctionSpec has them. Raises DeclarationError."""
    if not isinstance(units, Mapping) or len(units) > MOST_UNITS:
        raise DeclarationError(
            f"function {function!r}: units is {units!r:.200}; expected at most {MOST_UNITS}, such as "
            '{"tokens": 500} or {"tokens": {"field": "max_tokens"}}'
        )
    found = []
    for unit, source in units.items():
        _check_label("unit", unit)
        known = {"header", "field", "default"}
        if isinstance(source, Mapping):
            texts = [source.get(name, "") for name in ("header", "field")]
            right = not (source.keys() - known) and all(isinstance(text, str) for text in texts)
            made = UnitSource(unit, source.get("default"), *texts) if right else None
        else:
            made = UnitSource(unit, source)
        if made is None or (made.amount is not None and type(made.amount) not in (int, float)) or made.fault():
            raise DeclarationError(
                f"function {function!r}: units has {unit!r}: {source!r:.100}; expected a number, "
                '{"header": name} or {"field": name}, with {"default": number} for items that do not say'
            )
        found.append(made)
    return tuple(found)


def _signs(spec: FunctionSpec, throttled_by: ThrottledBy) -> tuple[tuple[type[BaseException], str], ...]:
    """Each error with the downstream that it blames: for a plain list the only one. Raises DeclarationError."""
    if isinstance(throttled_by, Mapping):
        by_name: Mapping[str, Sequence[type[BaseException]]] = throttled_by
    else:
        by_name = {spec.downstreams[0] if len(spec.downstreams) == 1 else "": throttled_by} if throttled_by else {}
    signs: list[tuple[type[BaseException], str]] = []
    for name, errors in by_name.items():
        if not isinstance(errors, list | tuple | set | frozenset):
            raise DeclarationError(
                f"function {spec.name!r}: throttled_by has {errors!r:.100}; expected a list of classes of exceptions"
            )
        if name not in spec.downstreams:
            blamed = f"{name!r:.100}" if isinstance(throttled_by, Mapping) else "one of several, or none"
            raise DeclarationError(
                f"function {spec.name!r}: throttled_by blames a downstream that the function declares, not {blamed}: "
                'name it in downstreams=[…]; of several, say which: throttled_by={"stripe": [ConnectionError]}'
            )
        for error in errors:
            if not (isinstance(error, type) and issubclass(error, BaseException)):
                raise DeclarationError(
                    f"function {spec.name!r}: throttled_by has {error!r:.100}; expected classes of exceptions"
                )
            signs.append((error, name))
    return tuple(signs)


def _check_callable(target: Any) -> None:
    if isinstance(target, Function):
        raise DeclarationError(f"{target.spec.name!r} is declared twice: one @tailrace.function is enough")
    if not inspect.isfunction(target):
        raise DeclarationError(
            f"@tailrace.function takes a function (async def or def), not {type(target).__name__}: {target!r:.100}"
        )
    if inspect.isgeneratorfunction(target) or inspect.isasyncgenfunction(target):
        raise DeclarationError(
            f"function {target.__name__!r} yields: a workload ends once, so return a value instead "
            "(submit follow-ups with a client)"
        )


def _check_parameters(name: str, signature: inspect.Signature) -> None:
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.VAR_POSITIONAL:
            raise DeclarationError(f"function {name!r} takes *{parameter.name}: arguments come by name, so name them")
        if parameter.kind is parameter.POSITIONAL_ONLY:
            raise DeclarationError(
                f"function {name!r}: {parameter.name!r} is positional-only, but arguments come by name: remove the /"
            )


def _check_label(what: str, value: Any) -> None:
    if not isinstance(value, str) or not is_name(value):
        raise DeclarationError(f"{what} {value!r:.100} is not usable: {EXPECTED}")


def _description(target: Callable[..., Any]) -> str:
    text = inspect.getdoc(target) or ""
    return text.partition("\n")[0].strip()[:DESCRIPTION_LENGTH]


def _optional(parameter: inspect.Parameter) -> bool:
    return parameter.default is not parameter.empty


def _is_context(hint: Any) -> bool:
    return hint is Context or (typing.get_origin(hint) is not None and Context in typing.get_args(hint))
