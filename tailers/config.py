"""The configuration of one tailer: one YAML file.

name: orders
source: {kind: log, stream: orders}
function: {header: function}        # or a name
tenant: {header: tenant, default: other}
retry: {max_attempts: 20, backoff: exponential, first: 5s, max: 6h}
window: {items: 8192, bytes: 16MiB, positions: 100000}
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, Self, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError
from pydantic_core.core_schema import ErrorType

from ..foundation.config import Bytes, Name, Seconds
from ..model.errors import ConfigError, InvalidRequest
from ..model.priority import Priority
from ..model.retry import Retry
from ..sdk.source import SourceKind
from .mapping.record_values import (
    ExpiresFrom,
    FromField,
    FromHeader,
    FromRecord,
    OnExpiry,
    PriorityFrom,
    UnitsFrom,
    check_expiry,
    check_level,
    unit_sources,
)
from .registry import kind_of
from .rules.clog import OnOutage
from .rules.window import Window


class RetryConfig(BaseModel):
    """A retry policy; keys that are left out have the defaults of model/retry.py. Wins over the function's own."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    max_attempts: int = 20
    backoff: str = "exponential"
    first: Seconds = 5.0
    max: Seconds = 6 * 3600.0
    delays: tuple[Seconds, ...] = ()
    jitter: float = 0.2
    max_crashes: int = 3
    from_due: bool = False

    @model_validator(mode="after")
    def _is_a_policy(self) -> Self:
        try:
            self.policy()
        except InvalidRequest as error:
            raise PydanticCustomError("retry", "{reason}", {"reason": str(error)}) from None
        return self

    def policy(self) -> Retry:
        """The policy as the retry rule takes it."""
        return Retry(**{name: getattr(self, name) for name in type(self).model_fields})


class WindowConfig(BaseModel):
    """Back-pressure: how much a tailer may have read and not yet settled.

    items       enough by default to keep a fast function busy over a few milliseconds of round trip
    bytes       of all payloads in memory; the default is about 2 KB an item
    positions   how far reading may pass the oldest unsettled item (4 MB of memory when all of them are held)
    detach_after   an item of a stream with `order: none` that has run for so long is passed while it runs, at the price
                of its payload in the delay service; 0: never. A minute is beyond every lease, and longer than most
                functions run, so that a stream of short items writes nothing
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    items: int = Field(default=8192, ge=1, le=1_000_000)
    bytes: Bytes = Field(default=16 << 20, ge=1, le=1 << 30)
    positions: int = Field(default=100_000, ge=1, le=10_000_000)
    detach_after: Seconds = Field(default=60.0, ge=0, allow_inf_nan=False)

    def rule(self) -> Window:
        """A fresh window of this size."""
        return Window(self.items, self.bytes, self.positions)


class TailerConfig(BaseModel):
    """One tailer.

    name        names the tailer, its checkpoint and its items' ids: renaming it starts over
    source      `kind` and that kind's own options
    function    a name, or the header that holds it; a queue's items name their own
    priority    a level, a header, a field of the payload (JSON), or rules; default: the function's own
    highest_priority   no item of this source is more urgent than this level, whatever its record or its function says
    look_ahead  where each record has its own priority: the number of items that may wait their turn while the stream is
                read on for more urgent ones. Default: half of window.items, which stay in memory, so that nothing is
                read twice; window.positions where records also name their function, since a slow one must not keep
                others from being read
    expires     how long after its record's time an item may start, or a header or field that holds a moment or a time
    on_expiry   settle: an expired item is passed, and counted as expired. dead_letter: it also becomes a dead letter
    collection, tenant, key    constants or headers; `key: {record: true}` takes the record's key
    retry       default: the function's own policy
    order       none: failed items are parked and never wait for each other. key: items of one key run one at a time,
                in the order of their partition; one that failed is tried again before the next. partition: the same
                for all items of a partition
    shared_keys with `order: key`: items of different tenants that have the same key are in one line (tenants are labels
                only); else a key is its tenant's own
    overlap     with an order: queue: an item waits for the earlier items of its key; skip: it is passed while one of
                them is not over, and counted as filtered; or the header that says which
    stalled_after   a tailer with work and no completion for so long is unhealthy
    on_outage   clog (a circuit breaker): when nearly all first attempts of a function fail, its items wait where they
                are until it works. park: its items run all the same, and failed ones go to the delay service
    results     keep the values that the functions return
    trace_ratio share of items, 0 to 1, that is traced where neither submission nor record decides it; the same items
                each time, by their ids. Default: OTEL_TRACES_SAMPLER_ARG, else one in a hundred, once an endpoint of
                OpenTelemetry is set
    allow_loss  losses that are accepted in advance; retention: records that the source deletes before they are done
                (else the tailer stops there)
    units       estimates of the units with a rate of their own that an item uses: for each unit a number, a header or a
                field of the payload (JSON), such as {tokens: {field: max_tokens, default: "500"}}
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Name
    source: dict[str, Any]
    function: Name | FromHeader | None = None
    priority: PriorityFrom | None = None
    highest_priority: str = ""
    look_ahead: int | None = Field(None, ge=1, le=10_000_000)
    expires: ExpiresFrom | None = None
    on_expiry: OnExpiry = "settle"
    collection: str | FromHeader = ""
    tenant: str | FromHeader = ""
    key: FromHeader | FromRecord | None = None
    retry: RetryConfig | None = None
    window: WindowConfig = WindowConfig()
    order: Literal["none", "key", "partition"] = "none"
    shared_keys: bool = False
    overlap: Literal["queue", "skip"] | FromHeader = "queue"
    stalled_after: Seconds = Field(60.0, gt=0)
    on_outage: OnOutage = OnOutage.CLOG
    results: bool = False
    trace_ratio: float | None = Field(None, ge=0, le=1)
    allow_loss: tuple[Literal["retention"], ...] = ()
    units: UnitsFrom = Field(default_factory=dict)

    @classmethod
    def model_validate(cls, obj: Any, **how: Any) -> Self:
        """Validates the file, and `source` against the options of its kind. Raises ValidationError with all errors at
        once, each at its own key."""
        source = obj.get("source") if isinstance(obj, dict) else None
        mistakes = _mistakes_in(source) if isinstance(source, dict) and isinstance(source.get("kind"), str) else []
        try:
            config = super().model_validate(obj, **how)
        except ValidationError as error:
            raise _refusal([*map(_again, error.errors()), *mistakes]) from None
        if mistakes:
            raise _refusal(mistakes)
        kind = kind_of(str(config.source["kind"]))
        if kind.family == "stream" and config.function is None and kind.name != "due":
            mistakes.append(
                _mistake("function", "a stream's records do not name their function: give a name or {header: …}", None)
            )
        mistakes += [_mistake(key, why, getattr(config, key)) for key, why in _why_not_said_again(config, kind)]
        if why := _why_not_in_order(config, kind):
            mistakes.append(_mistake("order", why, config.order))
        if why := _why_not_detached(config, kind):
            mistakes.append(_mistake("window", why, config.window.detach_after))
        if config.overlap != "queue" and config.order == "none":
            why = 'items of "order: none" never wait for each other: write "order: key", or leave overlap out'
            mistakes.append(_mistake("overlap", why, None))
        if kind.family == "relay":
            said = config.model_fields_set - {"name", "source", "window", "stalled_after"}
            why = f"each row of an {kind.name} sets this itself, or the queue does: leave the key out"
            mistakes += [_mistake(key, why, None) for key in sorted(said)]
        if why := _why_never_lost(config, kind):
            mistakes.append(_mistake("allow_loss", why, None))
        mistakes += [_mistake(key, why, getattr(config, key)) for key, why in _why_not_urgent(config, kind)]
        if mistakes:
            raise _refusal(mistakes)
        return config

    @classmethod
    def keys_under(cls, path: tuple[str | int, ...], value: dict[str, Any]) -> list[str] | None:
        """The keys that may stand under `source`, for suggestions: `kind` and its options."""
        if path != ("source",) or not isinstance(value.get("source"), dict):
            return None
        try:
            kind = kind_of(str(value["source"].get("kind")))
        except ConfigError:
            return ["kind"]
        return ["kind", *kind.options.model_fields]

    def options_for(self, kind: SourceKind) -> Any:
        """The kind's own options, validated. Raises pydantic.ValidationError."""
        return kind.options.model_validate({name: value for name, value in self.source.items() if name != "kind"})

    @field_validator("source")
    @classmethod
    def _names_its_kind(cls, source: dict[str, Any]) -> dict[str, Any]:
        if not isinstance(source.get("kind"), str):
            raise PydanticCustomError("kind", "expected a mapping with a kind, such as {kind: log, stream: orders}")
        return source

    @field_validator("priority")
    @classmethod
    def _priority_is_a_level(cls, priority: PriorityFrom | None) -> PriorityFrom | None:
        if isinstance(priority, str | FromHeader | FromField):
            check_level(priority if isinstance(priority, str) else priority.default)
        return priority

    @field_validator("highest_priority")
    @classmethod
    def _highest_is_a_level(cls, highest: str) -> str:
        return check_level(highest)

    @field_validator("expires")
    @classmethod
    def _expires_some_time(cls, expires: ExpiresFrom | None) -> ExpiresFrom | None:
        if isinstance(expires, FromHeader | FromField):
            check_expiry(expires.default)
        elif expires is not None and expires <= 0:
            raise PydanticCustomError("expires", "expected a time above 0, such as 1h; without the key nothing expires")
        return expires

    @field_validator("units")
    @classmethod
    def _units_can_be(cls, units: UnitsFrom) -> UnitsFrom:
        try:
            unit_sources(units)
        except ValueError as error:
            raise PydanticCustomError("units", "{reason}", {"reason": str(error)}) from None
        return units

    @property
    def ranked(self) -> bool:
        """Whether each record has its own priority."""
        return not isinstance(self.priority, str | None)

    @property
    def looks_ahead(self) -> int:
        """Number of items that may wait for their turn while the stream is read on; 0: as many as may be held."""
        if not self.ranked:
            return 0
        if self.look_ahead is not None:
            return self.look_ahead
        return max(1, self.window.items >> 1) if isinstance(self.function, str) else 0


def _why_not_said_again(config: TailerConfig, kind: SourceKind) -> Iterator[tuple[str, str]]:
    """Yields the keys about something that each workload of a queue sets itself, each with what to write instead."""
    if kind.family != "queue":
        return
    for key in ("function", "priority", "collection", "tenant", "key"):
        if key in config.model_fields_set and not (
            key == "priority" and config.ranked
        ):  # _why_not_urgent tells of that
            more = ", or name it in `functions` under source, which takes only its workloads" * (key == "function")
            yield (
                key,
                f"a workload of the {kind.name} has the {key} that it was submitted with: leave the key out{more}",
            )


def _why_never_lost(config: TailerConfig, kind: SourceKind) -> str:
    """The advice on an `allow_loss` that has no meaning here; empty when it may stand."""
    if "retention" in config.allow_loss and not kind.retention:
        return f'a {kind.name} forgets nothing before it is done, so nothing needs allowing: leave "retention" out'
    return ""


def _why_not_urgent(config: TailerConfig, kind: SourceKind) -> Iterator[tuple[str, str]]:
    """Yields the keys about priority and deadline that have no meaning here, each with what to write instead."""
    if kind.family != "stream" or kind.name == "due":
        for key in ("look_ahead", "expires", "on_expiry"):
            if key in config.model_fields_set:
                yield key, f"items of a {kind.name} have the deadline that they were submitted with: leave the key out"
        if config.ranked:
            yield (
                "priority",
                f"items of a {kind.name} have the priority that they were submitted with: leave the key out",
            )
        if config.highest_priority:
            yield (
                "highest_priority",
                f"items of a {kind.name} have the priority that they were submitted with: leave the key out",
            )
        return
    highest, level = config.highest_priority, config.priority
    if highest and isinstance(level, str) and Priority.parse(level) < Priority.parse(highest):
        yield (
            "highest_priority",
            f"all records have the priority {level}, which is more urgent than {highest}: lower that priority, or "
            "leave the key out",
        )
    if config.ranked and config.order == "partition":
        yield (
            "priority",
            "items of a partition run in its order, so that none of them can go first: give one level for all, or "
            'write "order: key", with which the keys of urgent items go first',
        )
    if config.look_ahead is not None and not config.ranked:
        yield (
            "look_ahead",
            "all records have one priority, so no item is more urgent than another: leave the key out, or let the "
            "priority come from a header, a field or rules",
        )
    if config.look_ahead is not None and config.look_ahead > config.window.positions:
        yield (
            "look_ahead",
            f"{config.look_ahead} is beyond window.positions ({config.window.positions}), which reading never passes: "
            "lower it, or raise window.positions",
        )
    if config.on_expiry != "settle" and config.expires is None:
        yield "on_expiry", 'nothing expires: add "expires: 1h", or a header or field that holds a deadline'


def _why_not_in_order(config: TailerConfig, kind: SourceKind) -> str:
    """The advice on an `order` that cannot be kept; empty when it can."""
    if config.order == "none":
        return ""
    if kind.family != "stream" or kind.name == "due":
        return f'items of a {kind.name} are handed out when they are due, in no order: write "order: none"'
    if config.order == "key" and not (config.key if not isinstance(config.key, FromRecord) else config.key.record):
        return (
            '"key" needs to know the key of each record: add "key: {{record: true}}" for the record\'s own, or '
            '"key: {{header: NAME}}"'.replace("{{", "{").replace("}}", "}")
        )
    return ""


def _why_not_detached(config: TailerConfig, kind: SourceKind) -> str:
    """The advice on a `detach_after` that has no meaning here; empty when it may stand."""
    if "detach_after" not in config.window.model_fields_set or not config.window.detach_after:
        return ""
    if kind.family != "stream" or kind.name == "due":
        return f"items of a {kind.name} hold up nobody while they run: leave detach_after out"
    if config.order != "none":
        return "items in order are waited for, however long they run: leave detach_after out"
    return ""


def _mistakes_in(source: dict[str, Any]) -> list[InitErrorDetails]:
    """The errors in the options under `source`, as its kind finds them."""
    try:
        kind = kind_of(source["kind"])
        kind.options.model_validate({name: value for name, value in source.items() if name != "kind"})
    except ConfigError as error:
        reason = str(error).removeprefix("source.kind: ")
        return [InitErrorDetails(type=_own("kind", reason), loc=("source", "kind"), input=source)]
    except ValidationError as error:
        return [_again(line, "source") for line in error.errors()]
    return []


def _own(name: str, reason: str) -> PydanticCustomError:
    return PydanticCustomError(name, "{reason}", {"reason": reason})


def _mistake(key: str, reason: str, value: Any) -> InitErrorDetails:
    return InitErrorDetails(type=_own(key, reason), loc=(key,), input=value)


def _again(line: Any, *under: str) -> InitErrorDetails:
    """An error of an inner model, at its place in the tailer's file."""
    known = line["type"] in get_args(ErrorType)
    return InitErrorDetails(
        type=line["type"] if known else _own(line["type"], line["msg"]),
        loc=(*under, *line["loc"]),
        input=line["input"],
        ctx=line.get("ctx", {}) if known else {},
    )


def _refusal(mistakes: list[InitErrorDetails]) -> ValidationError:
    return ValidationError.from_exception_data("TailerConfig", mistakes)
