"""The output of commands: listings as aligned text or JSON, one clear line for an error, exit codes.

Exit codes: 0 done · 1 failed, or not found · 2 the input is wrong · 3 the other side is not available for now.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Annotated, Any, NoReturn, TypeVar

import typer

from ..model.errors import TailraceError, Unavailable, UserError
from ..model.plain_text import printable
from ..model.units import duration_text

T = TypeVar("T")

FAILED = 1
WRONG_INPUT = 2
UNAVAILABLE = 3

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Why = Annotated[str, typer.Option("--why", metavar="TEXT", help="The reason, kept with your name (`tailrace acts`).")]
GatewayAddress = Annotated[
    str | None,
    typer.Option(
        "--gateway",
        metavar="HOST:PORT",
        help="Address of the gateway; default: TAILRACE_GATEWAY, else 127.0.0.1:8786 or your gateway that runs here.",
    ),
]


#: The newer control characters (an 8-bit terminal takes one for the beginning of a sequence), marks that turn the
#: direction of the text behind them or have no width, and half characters.
_UNSHOWN = re.compile("[\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")


def say(text: str) -> None:
    """Writes one or several lines on standard output. Characters that could drive the terminal are escaped, since other
    people's text is shown too."""
    write("\n".join(map(printable, text.split("\n"))))


def complain(text: str) -> None:
    """Writes one or several lines on standard error, escaped as `say` does."""
    sys.stderr.write("\n".join(map(printable, text.split("\n"))) + "\n")


def write(text: str) -> None:
    """Writes lines for machines on standard output, as they are."""
    sys.stdout.write(f"{text}\n")


def show(rows: Sequence[Mapping[str, Any]], columns: Sequence[str], as_json: bool, *, empty: str = "none") -> None:
    """Shows a listing: a JSON array of whole rows, or the chosen columns aligned, or `empty`."""
    if as_json:
        show_json(list(rows))
    elif not rows:
        say(empty)
    else:
        table = [[name.upper().replace("_", " ") for name in columns]]
        table += [[cell(row.get(name)) for name in columns] for row in rows]
        widths = [max(len(row[index]) for row in table) for index in range(len(columns))]
        for row in table:
            say("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip())


def show_facts(facts: Mapping[str, Any], as_json: bool) -> None:
    """Shows one thing: a JSON object, or a line per fact that is known."""
    if as_json:
        show_json(dict(facts))
        return
    width = max((len(name) for name in facts), default=0)
    for name, value in facts.items():
        text = cell(value)
        if text:
            say(f"{name.replace('_', ' ').ljust(width)}  {text}")


def show_json(value: Any) -> None:
    """Writes any plain data as JSON. Characters that could drive a terminal, or hide in one, are escaped: JSON itself
    escapes only the older control characters."""
    text = json.dumps(value, indent=2, ensure_ascii=False, default=str)
    write(_UNSHOWN.sub(lambda found: f"\\u{ord(found[0]):04x}", text))


def cell(value: Any) -> str:
    """A value in the form for people; control characters are escaped, so that a payload cannot drive the terminal."""
    if value is None or value == "":
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, list | tuple | dict):
        value = json.dumps(value, ensure_ascii=False, default=str)
    return printable(str(value))


def moment(at: float) -> str | None:
    """A wall clock time as ISO 8601 with the local offset; None for 0."""
    if not at:
        return None
    zone = time.localtime(at)
    text = time.strftime("%Y-%m-%dT%H:%M:%S%z", zone)
    return f"{text[:-2]}:{text[-2:]}"


def distance(seconds: float) -> str:
    """A span of time in the form for people: whole seconds, or milliseconds below one."""
    return duration_text(round(seconds) if abs(seconds) >= 1 else seconds)


def call(work: Coroutine[Any, Any, T]) -> T:
    """Runs one conversation with another part to its end."""
    import asyncio

    return asyncio.run(work)


def not_found(message: str) -> NoReturn:
    """Ends the command with a message about a thing that does not exist."""
    complain(f"tailrace: {message}")
    raise typer.Exit(FAILED)


def exit_code(error: BaseException) -> int:
    """The exit code for an error of the platform."""
    if isinstance(error, UserError):
        return WRONG_INPUT
    if isinstance(getattr(error, "code", None), int):  # a part that did not start, for a reason of its own
        return WRONG_INPUT if error.code == WRONG_INPUT else FAILED  # type: ignore[attr-defined]
    return UNAVAILABLE if isinstance(error, Unavailable) else FAILED


def explain(error: TailraceError) -> str:
    """The text that is shown for an error; a configuration's many lines stand alone."""
    text = str(error) or type(error).__name__
    return text if "\n" in text else f"tailrace: {text}"


@contextmanager
def progress(title: str, total: int) -> Iterator[Any]:
    """A progress bar on a terminal, nothing elsewhere; yields `advance(count)`."""
    if not sys.stderr.isatty() or total < 2:
        yield lambda count=1: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=total)
        yield lambda count=1: bar.advance(task, count)
