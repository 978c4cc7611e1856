"""Commands about outboxes: make the table, show the rows that were set aside, have them taken again."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from ...foundation import terminal
from ...foundation.terminal import Json

if TYPE_CHECKING:
    from ...stores.outbox.outbox import Outbox

outbox = typer.Typer(
    help="Tables in your own databases, in which transactions leave workloads.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Database = Annotated[
    str, typer.Argument(metavar="DATABASE", help="postgresql://USER@HOST:5432/DATABASE, or the path of an SQLite file.")
]
Table = Annotated[str, typer.Option("--table", metavar="NAME", help="The table's name.")]
DEFAULT_TABLE = "tailrace_outbox"
#: Rows that `list` shows.
SHOWN = 100

T = TypeVar("T")


@outbox.command()
def create(
    database: Database,
    table: Table = DEFAULT_TABLE,
    only_print: Annotated[bool, typer.Option("--print", help="Print the SQL and connect to nothing.")] = False,
) -> None:
    """Make the table where it is missing. Users that enqueue need the right to insert into it, the relay all rights."""
    if only_print:
        from ...stores.outbox import postgres_table, sqlite_table

        kind = postgres_table if database.startswith(("postgresql://", "postgres://")) else sqlite_table
        for statement in kind.create(table):
            terminal.say(f"{statement};")
        return
    opened = _outbox(database, table)
    terminal.call(_with(opened, opened.create))
    terminal.say(f"{opened.name}: ready")


@outbox.command("list")
def outbox_list(database: Database, table: Table = DEFAULT_TABLE, as_json: Json = False) -> None:
    """Show how many rows wait for the relay to the queue, and which were set aside, with the reason."""
    opened = _outbox(database, table)

    async def ask() -> tuple[Any, list[tuple[int, str, str]]]:
        return await opened.count(), await opened.aside(SHOWN)

    count, aside = terminal.call(_with(opened, ask))
    rows = [{"place": place, "function": function, "reason": reason} for place, function, reason in aside]
    if as_json:
        terminal.show_json({"waiting": count.going, "set_aside": count.aside, "rows": rows})
        return
    terminal.say(f"{opened.name}: {count.going} wait, {count.aside} were set aside")
    if rows:
        terminal.show(rows, ["place", "function", "reason"], False, empty="")


@outbox.command()
def retry(database: Database, table: Table = DEFAULT_TABLE) -> None:
    """Have the relay take the rows again that were set aside, once their cause is mended."""
    opened = _outbox(database, table)
    count = terminal.call(_with(opened, opened.take_up))
    terminal.say(f"{opened.name}: {count} rows are taken again")


def _outbox(database: str, table: str) -> Any:
    from pydantic import ValidationError

    from ...model.errors import ConfigError
    from ..sources.outbox import OutboxOptions, outbox_of

    try:
        return outbox_of(OutboxOptions.model_validate({"database": database, "table": table}))
    except ValidationError as error:
        said = "; ".join(each["msg"].removeprefix("Value error, ") for each in error.errors(include_input=False))
        raise ConfigError(said) from None


async def _with(opened: Outbox, ask: Callable[[], Awaitable[T]]) -> T:
    try:
        await opened.open()
        return await ask()
    finally:
        await opened.close()
