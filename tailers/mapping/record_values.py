"""Values that a tailer's file takes from each record: its key, a header, a field of its payload, or by rules."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, field_validator, model_validator
from pydantic_core import PydanticCustomError

from ...foundation.config import Seconds
from ...model.errors import InvalidRequest
from ...model.priority import Priority
from ...model.unit_rate import MOST_UNITS, MOST_USED, UnitSource, amount_of
from ..rules.expiry import expiry_of
from ..rules.urgency import Condition, text_of

#: The most rules of one tailer.
MOST_RULES = 64


class FromHeader(BaseModel):
    """A value that each record carries in a header; `default` for records without it (empty: none)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    header: str = Field(min_length=1)
    default: str = ""


class FromRecord(BaseModel):
    """The record's own key."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    record: bool = True


class FromField(BaseModel):
    """A value in the payload, which is JSON: `field` is a name, or several with dots between them for a value deeper
    inside; `default` for records without it (empty: none)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    field: str = Field(min_length=1)
    default: str = ""


class PriorityRule(BaseModel):
    """The priority of records whose header or field meets a condition. Without `is`, `at_least` and `at_most` every
    record that has the header or field meets it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    header: str = ""
    field: str = ""
    is_: Any = Field(None, alias="is", description="a value, or a list of values")
    at_least: float | None = None
    at_most: float | None = None
    priority: str

    @field_validator("priority")
    @classmethod
    def _is_a_level(cls, priority: str) -> str:
        return check_level(priority)

    @model_validator(mode="after")
    def _is_one_test(self) -> Self:
        if bool(self.header) == bool(self.field):
            raise PydanticCustomError("rule", "expected either a header or a field, such as {field: amount, …}")
        values = self.is_ if isinstance(self.is_, list) else [self.is_]
        if self.is_ is not None and not (values and all(text_of(each) is not None for each in values)):
            raise PydanticCustomError("rule", "is: expected a value or a list of values: text, numbers, true or false")
        return self

    def condition(self) -> Condition:
        """The rule in the form that rules/urgency.py takes."""
        values = self.is_ if isinstance(self.is_, list) else [self.is_]
        allowed = None if self.is_ is None else frozenset(filter(None, map(text_of, values)))
        rank = int(Priority.parse(self.priority))
        return Condition(
            self.header, tuple(filter(None, self.field.split("."))), allowed, self.at_least, self.at_most, rank
        )


class PriorityRules(BaseModel):
    """The first rule that a record meets sets its priority; `default` if it meets none (empty: the function's own)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    rules: tuple[PriorityRule, ...]
    default: str = ""

    @field_validator("rules")
    @classmethod
    def _are_some(cls, rules: tuple[PriorityRule, ...]) -> tuple[PriorityRule, ...]:
        if not 1 <= len(rules) <= MOST_RULES:
            raise PydanticCustomError("rules", f"expected 1 to {MOST_RULES} rules, got {len(rules)}")
        return rules

    @field_validator("default")
    @classmethod
    def _is_a_level(cls, default: str) -> str:
        return check_level(default)


def check_level(level: str) -> str:
    """A priority level after a check; it may be empty (none). Raises PydanticCustomError for an unknown level."""
    try:
        Priority.parse(level or 0)
    except InvalidRequest as error:
        raise PydanticCustomError("priority", "{reason}", {"reason": str(error)}) from None
    return level


def unit_sources(units: UnitsFrom) -> tuple[UnitSource, ...]:
    """The sources of estimates, one for each unit. Raises ValueError for a default or a unit that cannot be."""
    found = []
    for unit, source in units.items():
        if isinstance(source, float):
            made = UnitSource(unit, source)
        else:
            default = amount_of(source.default) if source.default else None
            if source.default and default is None:
                raise ValueError(f"{unit}: default is {source.default!r}: expected a number")
            header, field = (source.header, "") if isinstance(source, FromHeader) else ("", source.field)
            made = UnitSource(unit, default, header, field)
        if fault := made.fault():
            raise ValueError(fault)
        found.append(made)
    if len(found) > MOST_UNITS:
        raise ValueError(f"{len(found)} units: at most {MOST_UNITS} are taken")
    return tuple(found)


def check_expiry(default: str) -> str:
    """A default deadline after a check; it may be empty. Raises PydanticCustomError for one that cannot be read."""
    if default and expiry_of(default) is None:
        reason = f'default is {default!r}: expected how long after the record\'s time, such as "1h"'
        raise PydanticCustomError("expires", "{reason}", {"reason": reason})
    return default


def _shape(value: Any) -> str:
    """The tag of the type below that a value has, so that a mistake in it is reported once."""
    for name, model in (("rules", PriorityRules), ("field", FromField)):
        if isinstance(value, model) or (isinstance(value, dict) and name in value):
            return f"from_{name}"
    return "from_header" if isinstance(value, dict | FromHeader) else "value"


#: The source of a priority: a level, or each record.
PriorityFrom = Annotated[
    Annotated[str, Tag("value")]
    | Annotated[FromHeader, Tag("from_header")]
    | Annotated[FromField, Tag("from_field")]
    | Annotated[PriorityRules, Tag("from_rules")],
    Discriminator(_shape),
]
#: The source of an item's estimate, for each unit with a rate of its own: a number, or each record.
UnitsFrom = dict[
    str,
    Annotated[
        Annotated[float, Field(ge=0, le=MOST_USED, allow_inf_nan=False), Tag("value")]
        | Annotated[FromHeader, Tag("from_header")]
        | Annotated[FromField, Tag("from_field")],
        Discriminator(lambda value: "from_header" if _shape(value) == "from_rules" else _shape(value)),
    ],
]
#: The source of a deadline: a duration after each record's own time, or a value in the record.
ExpiresFrom = Annotated[
    Annotated[Seconds, Tag("value")]
    | Annotated[FromHeader, Tag("from_header")]
    | Annotated[FromField, Tag("from_field")],
    Discriminator(lambda value: "from_header" if _shape(value) == "from_rules" else _shape(value)),
]
#: The end of an item whose deadline passed.
OnExpiry = Literal["settle", "dead_letter"]
