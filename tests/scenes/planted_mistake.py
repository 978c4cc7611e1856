"""A mistake planted in a rule's own text, and the histories that should find it."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Iterable, Sequence
from types import ModuleType
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

#: How a mistake is looked for: nobody reads the smallest example, so none is made.
LOOK = settings(
    deadline=None,
    derandomize=True,
    database=None,
    report_multiple_bugs=False,
    suppress_health_check=list(HealthCheck),
    print_blob=False,
    phases=[Phase.generate],
)


def history(machine: type[RuleBasedStateMachine]) -> Callable[[], None]:
    """Runs some hundred histories of a machine, the same ones each time."""

    def run() -> None:
        run_state_machine_as_test(
            machine,
            settings=settings(LOOK, max_examples=600, stateful_step_count=30),
        )

    return run


def examples(test: Any, strategies: Sequence[Any]) -> Callable[[], None]:
    """Runs a test of hypothesis on its strategies, each time with the same three hundred examples."""
    found: Callable[[], None] = settings(LOOK, max_examples=300)(given(*strategies)(test.hypothesis.inner_test))
    return found


class Mistake(NamedTuple):
    """A mistake: in `name` of `owner` the text `right` is `wrong`; `found_by` fails then."""

    owner: Any
    name: str
    right: str
    wrong: str
    found_by: Callable[[], None]


def plant(mistake: Mistake, importers: Iterable[ModuleType], monkeypatch: pytest.MonkeyPatch) -> None:
    """Replaces the rule by itself with the mistake in it, also where `importers` know a function by name."""
    former = inspect.unwrap(getattr(mistake.owner, mistake.name))
    text = textwrap.dedent(inspect.getsource(former))
    assert mistake.right in text, "the rule is written otherwise now: plant the mistake anew"
    made: dict[str, Any] = {}
    source = "from __future__ import annotations\n" + text.replace(mistake.right, mistake.wrong)
    exec(compile(source, f"<{mistake.name}, wrong>", "exec"), former.__globals__, made)
    wrong = made[mistake.name]
    monkeypatch.setattr(mistake.owner, mistake.name, wrong)
    if inspect.ismodule(mistake.owner):
        for module in importers:
            if getattr(module, mistake.name, None) is former:
                monkeypatch.setattr(module, mistake.name, wrong)
