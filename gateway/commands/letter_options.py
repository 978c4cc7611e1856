"""The options of `tailrace dead` that choose letters, defined once for every command."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

if TYPE_CHECKING:
    from ...model.dead_letter import LetterFilter

Ids = Annotated[list[str] | None, typer.Argument(metavar="[ID…]", help="Ids of letters.")]
OfFunction = Annotated[str, typer.Option("--function", help="Only of this function.")]
OfTailer = Annotated[str, typer.Option("--tailer", help="Only from this tailer, now or at the first death.")]
OfCollection = Annotated[str, typer.Option("--collection", help="Only of this collection.")]
OfTenant = Annotated[str, typer.Option("--tenant", help="Only of this tenant.")]
Reason = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Only with this text in the reason.")]
Since = Annotated[str, typer.Option("--since", metavar="TIME", help='Died since: "1h" ago, or "2026-05-01T12:00".')]
Until = Annotated[str, typer.Option("--until", metavar="TIME", help="Died before, written like --since.")]
Attempts = Annotated[int, typer.Option("--attempts", min=0, help="Only after at least so many failed attempts.")]
Crashes = Annotated[int, typer.Option("--crashes", min=0, help="Only after at least so many crashes.")]


def letters(
    ids: Ids = None,
    function: OfFunction = "",
    tailer: OfTailer = "",
    collection: OfCollection = "",
    tenant: OfTenant = "",
    reason: Reason = "",
    since: Since = "",
    until: Until = "",
    attempts: Attempts = 0,
    crashes: Crashes = 0,
) -> LetterFilter:
    """The filter of the options. It ends now, so that workloads that die again are not chosen again."""
    from ...foundation.clock import SYSTEM_CLOCK
    from ...model.dead_letter import LetterFilter
    from ...model.units import moment_of

    now = SYSTEM_CLOCK.wall()
    return LetterFilter(
        ids=tuple(ids or ()),
        function=function,
        tailer=tailer,
        collection=collection,
        tenant=tenant,
        reason=reason,
        since=moment_of("--since", since, now),
        until=moment_of("--until", until, now) or now,
        attempts=attempts,
        crashes=crashes,
    )


def meant(*, ids: bool = True) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Makes a command with a parameter `which: LetterFilter` take the options above for it; without `ids` no letter can
    be named by its id."""
    chosen = _parameters(letters)
    if not ids:
        del chosen["ids"]

    def with_options(command: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(command)
        def run(**values: Any) -> None:
            command(which=letters(**{name: values.pop(name) for name in chosen}), **values)

        own = {name: each for name, each in _parameters(command).items() if name != "which"}
        parameters = [*chosen.values(), *own.values()]
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {each.name: each.annotation for each in parameters}
        return run

    return with_options


def _parameters(command: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """The parameters of a command by name, with resolved types, as keywords for typer."""
    hints = get_type_hints(command, localns={"LetterFilter": object}, include_extras=True)
    return {
        name: each.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=hints[name])
        for name, each in inspect.signature(command).parameters.items()
    }
