"""Labels of workers, and the requirements of functions that they meet (in Kubernetes' words: node selectors).

A label is a name, or a name and a value: `gpu`, `region=eu`, `cuda=12.4`. A requirement is a name that must be there,
or one that is compared: `gpu`, `region=eu`, `python>=3.12`. Values that are versions (numbers with dots) are compared
number by number, so 3.9 is less than 3.12 and 3.12 is 3.12.0; others only for being the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import NamedTuple

from .errors import InvalidRequest

#: Labels of one worker, and requirements of one function.
MOST_LABELS = 32
#: Characters of a name, and of a value.
LONGEST_PART = 64

_PART = rf"[A-Za-z0-9][A-Za-z0-9._+/-]{{0,{LONGEST_PART - 1}}}"
_LABEL = re.compile(rf"({_PART})(?: *= *({_PART}))?", re.ASCII)
_REQUIREMENT = re.compile(rf"({_PART})(?: *(>=|<=|!=|==|=|>|<) *({_PART}))?", re.ASCII)
_VERSION = re.compile(r"\d{1,9}(?:\.\d{1,9}){0,7}", re.ASCII)


class Requirement(NamedTuple):
    """A label that a worker must have: `operator` is one of OPERATORS, or empty where its being there is enough."""

    name: str
    operator: str = ""
    value: str = ""

    def __str__(self) -> str:
        return self.name + self.operator + self.value

    def met_by(self, labels: Mapping[str, str]) -> bool:
        """Whether a worker with these labels meets it. A label that is not there meets none, not even `!=`."""
        if self.name not in labels:
            return False
        return not self.operator or OPERATORS[self.operator](_compared(labels[self.name], self.value))


def _equal(order: int | None) -> bool:
    return order == 0


#: Tests of the order of a label's value to the wanted one: below 0, 0, above 0; None: unequal, neither is more.
OPERATORS: Mapping[str, Callable[[int | None], bool]] = {
    "=": _equal,
    "!=": lambda order: order != 0,
    ">=": lambda order: order is not None and order >= 0,
    "<=": lambda order: order is not None and order <= 0,
    ">": lambda order: order is not None and order > 0,
    "<": lambda order: order is not None and order < 0,
}


def _compared(value: str, wanted: str) -> int | None:
    if not (_VERSION.fullmatch(value) and _VERSION.fullmatch(wanted)):
        return 0 if value == wanted else None
    pairs = zip_longest(map(int, value.split(".")), map(int, wanted.split(".")), fillvalue=0)
    return next((1 if one > other else -1 for one, other in pairs if one != other), 0)


def label(text: str) -> tuple[str, str]:
    """The name and the value (may be empty) of a label. Raises InvalidRequest for a text that is none."""
    found = _LABEL.fullmatch(text.strip())
    if found is None:
        raise InvalidRequest(
            f"{text[:LONGEST_PART]!r} is not a label: expected a name, or name=value, such as gpu or region=eu"
        )
    return found[1], found[2] or ""


def labels(texts: Iterable[str]) -> dict[str, str]:
    """Labels by name. Raises InvalidRequest for a text that is no label, for a name that is there twice, and for too
    many."""
    found: dict[str, str] = {}
    for text in texts:
        name, value = label(text)
        if name in found:
            raise InvalidRequest(f"the label {name!r} is there twice: leave one out")
        found[name] = value
    if len(found) > MOST_LABELS:
        raise InvalidRequest(f"there are {len(found)} labels: at most {MOST_LABELS}")
    return found


def requirement(text: str) -> Requirement:
    """The requirement that a text is. Raises InvalidRequest for a text that is none."""
    found = _REQUIREMENT.fullmatch(text.strip())
    if found is None:
        raise InvalidRequest(
            f"{text[:LONGEST_PART]!r} is not a requirement: expected a label's name, or one that is compared, such as "
            f"gpu, region=eu or python>=3.12 (one of {' '.join(OPERATORS)})"
        )
    operator = "=" if found[2] == "==" else found[2] or ""
    made = Requirement(found[1], operator, found[3] or "")
    if operator[:1] in ("<", ">") and not _VERSION.fullmatch(made.value):
        raise InvalidRequest(f"{text[:LONGEST_PART]!r} compares with {made.value!r}: expected numbers such as 3.12")
    return made


def unmet(requires: Sequence[str], labels: Mapping[str, str]) -> str:
    """The first requirement that a worker with these labels does not meet, and why; empty: it meets all."""
    for text in requires:
        wanted = requirement(text)
        if not wanted.met_by(labels):
            has = labels.get(wanted.name)
            return f"{wanted} ({'it has no such label' if has is None else f'it has {wanted.name}={has}'})"
    return ""
