"""The target of a stream tailer: its mapping, and the one kind of all its items where the configuration sets it."""

from __future__ import annotations

from collections.abc import Mapping as ReadOnly

from ...model.did_you_mean import nearest, question
from ...model.function_spec import FunctionSpec
from ...model.priority import DEFAULT_PRIORITY, Priority
from ...model.workload import Kind
from ..config import TailerConfig
from ..rules.credit import Credit
from .mapping import FieldMapping, Mapping, ParkedMapping


class Target:
    """The target of one tailer. `parked`: its source holds items of the delay service, which name their own target."""

    def __init__(self, config: TailerConfig, *, parked: bool) -> None:
        self._config = config
        self._priorities: dict[str, int] = {}
        self._only = isinstance(config.function, str) and isinstance(config.priority, str | None)
        self.mapping: Mapping = ParkedMapping() if parked else FieldMapping(config, self._priorities.get)

    @property
    def only_kind(self) -> Kind | None:
        """The kind of every item; None: they may differ."""
        if not self._only:
            return None
        priority = self._config.priority
        rank = int(Priority.parse(priority)) if isinstance(priority, str) else int(DEFAULT_PRIORITY)
        return self.mapping.kind(Kind(str(self._config.function), rank))

    def functions_changed(self, functions: ReadOnly[str, FunctionSpec]) -> bool:
        """Takes new or changed functions. Returns whether items of some have another cell now."""
        priorities = {name: int(spec.priority) for name, spec in functions.items()}
        if priorities == self._priorities:
            return False
        self._priorities.clear()
        self._priorities.update(priorities)
        self.mapping.refresh()
        return True

    def why_no_credit(self, credit: Credit, functions: ReadOnly[str, FunctionSpec]) -> str:
        """The reason why nothing of the only kind may be pushed; empty when it may, or when there is no only kind."""
        kind = self.only_kind
        if kind is None:
            return ""
        if kind.function not in functions:
            asked = question(nearest(kind.function, functions))
            return f'no worker runs the function "{kind.function}"{f"; {asked}" if asked else ""}'
        return credit.why_closed(kind)
