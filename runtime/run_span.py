"""The span of a run: its function sees one of OpenTelemetry's API, with any SDK or none; when it is over it is ours.

The SDK's own takes ten times as long to make and to export; a run that is traced should not be slower for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from opentelemetry.trace import Span as ApiSpan
from opentelemetry.trace import SpanContext, StatusCode

from ..model import spans
from ..model.plain_text import plain
from ..model.spans import Event, Span

#: Attributes and events that a function may add, and characters of each text.
MOST_ATTRIBUTES, MOST_EVENTS, LONGEST = 128, 128, 2000


class RunSpan(ApiSpan):
    """A span that is recorded. A function's additions are bounded; more is left out."""

    def __init__(
        self,
        context: SpanContext,
        name: str,
        parent: int,
        start: float,
        attributes: dict[str, Any],
        wall: Callable[[], float],
    ) -> None:
        self._context = context
        self._name = name
        self._parent = parent
        self._start = start
        self._attributes = attributes
        self._events: list[Event] = []
        self._error = ""
        self._wall = wall

    def get_span_context(self) -> SpanContext:
        return self._context

    def is_recording(self) -> bool:
        return True

    def set_attributes(self, attributes: Mapping[str, Any]) -> None:
        for name, value in attributes.items():
            self.set_attribute(name, value)

    def set_attribute(self, key: str, value: Any) -> None:
        if key in self._attributes or len(self._attributes) < MOST_ATTRIBUTES:
            self._attributes[plain(key, LONGEST)] = _plain(value)

    def add_event(self, name: str, attributes: Any = None, timestamp: int | None = None) -> None:
        if len(self._events) < MOST_EVENTS:
            at = self._wall() if timestamp is None else timestamp / 1e9
            few = list((attributes or {}).items())[:MOST_ATTRIBUTES]
            self._events.append((plain(name, LONGEST), at, {plain(key, LONGEST): _plain(value) for key, value in few}))

    def update_name(self, name: str) -> None:
        self._name = plain(name, LONGEST)

    def set_status(self, status: Any, description: str | None = None) -> None:
        code = getattr(status, "status_code", status)
        told = description or getattr(status, "description", None)
        self._error = (plain(told, spans.REASON_LENGTH) or "error") if code is StatusCode.ERROR else ""

    def record_exception(
        self, exception: BaseException, attributes: Any = None, timestamp: int | None = None, escaped: bool = False
    ) -> None:
        told = {"exception.type": type(exception).__qualname__, "exception.message": plain(exception, LONGEST)}
        self.add_event("exception", {**(attributes or {}), **told}, timestamp)

    def end(self, end_time: int | None = None) -> None:
        """Does nothing: the engine that runs the function ends the span."""

    def over(self, outcome: str, error: str) -> Span:
        """The span of a run that is over, with the outcome's name, and its reason where that is an error."""
        self._attributes[spans.OUTCOME] = outcome
        if error:
            self._attributes[spans.ERROR_TYPE] = outcome
        context = self._context
        own = (context.trace_id, context.span_id, self._parent, self._start, max(self._start, self._wall()))
        told = error or self._error
        return Span(self._name, spans.CONSUMER, *own, self._attributes, (), told, tuple(self._events))


def _plain(value: Any) -> Any:
    if isinstance(value, bool | int | float):
        return value
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value[:MOST_ATTRIBUTES] if not isinstance(each, list | tuple)]
    return plain(value, LONGEST)
