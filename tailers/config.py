"""The configuration of one tailer: one YAML file.

name: orders
source: {kind: log, stream: orders}
function: {header: function}        # or a name
tenant: {header: tenant, default: other}
retry: {max_attempts: 20, backoff: exponential, first: 5s, max: 6h}
window: {items: 8192, bytes: 16MiB, positions: 100000}
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError
from pydantic_core.core_schema import ErrorType

from ..sdk.config import Bytes, Seconds
from ..sdk.model.errors import ConfigError, InvalidRequest
from ..sdk.model.function_spec import NAME_LENGTH, NAME_PATTERN
from ..sdk.model.priority import Priority
from ..sdk.model.retry import Retry
from ..sdk.source import SourceKind
from .registry import kind_of
from .rules.clog import OnOutage
from .rules.window import Window

Name = Annotated[str, Field(min_length=1, max_length=NAME_LENGTH, pattern=f"^{NAME_PATTERN}$")]


class FromHeader(BaseModel):
    """A value that each record carries in a header; `default` for records without it (empty: none)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    header: str = Field(min_length=1)
    default: str = ""


class FromRecord(BaseModel):
    """The record's own key."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    record: bool = True


class RetryConfig(BaseModel):
    """A retry policy; what is left out has the default of sdk/model/retry.py. Wins over the function's own."""

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
    """Back-pressure. Defaults: `items` keeps a fast function busy over a few milliseconds of round trip, `bytes` is
    about 2 KB for each of them, `positions` is how far reading may pass the oldest unsettled item (4 MB when all of
    them are held)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    items: int = Field(8192, ge=1, le=1_000_000)
    bytes: Bytes = Field(16 << 20, ge=1, le=1 << 30)
    positions: int = Field(100_000, ge=1, le=10_000_000)

    def rule(self) -> Window:
        """A fresh window of this size."""
        return Window(self.items, self.bytes, self.positions)


class TailerConfig(BaseModel):
    """One tailer.

    name        names the tailer, its checkpoint and its items' ids: renaming it starts over
    source      `kind` and that kind's own options
    function    a name, or the header that holds it; a queue's items name their own
    priority    a level, or a header; default: the function's own
    collection, tenant, key    constants or headers; `key: {record: true}` takes the record's key
    retry       default: the function's own policy
    order       none: failed items are parked and never wait for each other. key: items of one key run one at a time,
                in the order of their partition; one that failed is tried again before the next. partition: the same
                for all items of a partition
    stalled_after   with work and no completion for so long, the tailer is unhealthy
    on_outage   clog: when nearly all first attempts of a function fail, its items wait where they are until it works.
                park: they run all the same, and what fails goes to the delay service
    results     keep what the functions return
    allow_loss  what may be lost without anybody's word; retention: records that the source forgets before they are
                done (else the tailer stops there)
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Name
    source: dict[str, Any]
    function: Name | FromHeader | None = None
    priority: str | FromHeader | None = None
    collection: str | FromHeader = ""
    tenant: str | FromHeader = ""
    key: FromHeader | FromRecord | None = None
    retry: RetryConfig | None = None
    window: WindowConfig = Field(default_factory=lambda: WindowConfig.model_validate({}))
    order: Literal["none", "key", "partition"] = "none"
    stalled_after: Seconds = Field(60.0, gt=0)
    on_outage: OnOutage = OnOutage.CLOG
    results: bool = False
    allow_loss: tuple[Literal["retention"], ...] = ()

    @classmethod
    def model_validate(cls, obj: Any, **how: Any) -> Self:
        """Also checks `source` against the options of its kind, each error at its own key; all of them at once."""
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
        if why := _why_not_in_order(config, kind):
            mistakes.append(_mistake("order", why, config.order))
        if why := _why_never_lost(config, kind):
            mistakes.append(_mistake("allow_loss", why, None))
        if mistakes:
            raise _refusal(mistakes)
        return config

    @classmethod
    def keys_under(cls, path: tuple[str | int, ...], value: dict[str, Any]) -> list[str] | None:
        """The keys that may stand under `source`, for suggestions: those of its kind."""
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
    def _priority_is_a_level(cls, priority: str | FromHeader | None) -> str | FromHeader | None:
        level = priority.default if isinstance(priority, FromHeader) else priority
        try:
            Priority.parse(level or 0)
        except InvalidRequest as error:
            raise PydanticCustomError("priority", "{reason}", {"reason": str(error)}) from None
        return priority


def _why_never_lost(config: TailerConfig, kind: SourceKind) -> str:
    """What to write instead of an `allow_loss` that means nothing; empty when it may stand."""
    if "retention" in config.allow_loss and not kind.retention:
        return f'a {kind.name} forgets nothing before it is done, so nothing needs allowing: leave "retention" out'
    return ""


def _why_not_in_order(config: TailerConfig, kind: SourceKind) -> str:
    """What to write instead of an `order` that cannot be kept; empty when it can."""
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


def _mistakes_in(source: dict[str, Any]) -> list[InitErrorDetails]:
    """What the kind says of its options."""
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
    """An error of a model, at its place in the tailer's file."""
    known = line["type"] in get_args(ErrorType)
    return InitErrorDetails(
        type=line["type"] if known else _own(line["type"], line["msg"]),
        loc=(*under, *line["loc"]),
        input=line["input"],
        ctx=line.get("ctx", {}) if known else {},
    )


def _refusal(mistakes: list[InitErrorDetails]) -> ValidationError:
    return ValidationError.from_exception_data("TailerConfig", mistakes)
