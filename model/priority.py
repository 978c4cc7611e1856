"""Priorities are named levels; lower numbers go first."""

from __future__ import annotations

from enum import IntEnum

from .errors import InvalidRequest


class Priority(IntEnum):
    """The levels, most urgent first. The number is the rank on the wire and in every store's index."""

    INTERACTIVE = 0
    USER_VISIBLE = 1
    EVENTUAL = 2
    REPORTING = 3

    @property
    def label(self) -> str:
        """The name users write: `interactive`, `user_visible`, `eventual`, `reporting`."""
        return self.name.lower()

    @classmethod
    def parse(cls, value: str | int | Priority) -> Priority:
        """The level of a name or a rank. Raises InvalidRequest naming the known levels."""
        try:
            return cls(value) if isinstance(value, int) else cls[value.upper()]
        except (KeyError, ValueError):
            known = ", ".join(level.label for level in cls)
            raise InvalidRequest(f"unknown priority {value!r}: expected one of {known}") from None


DEFAULT_PRIORITY = Priority.EVENTUAL
