"""The commands `tailrace dead …`: list, show, redrive and purge dead letters. They ask the gateway, never a store."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...foundation import terminal
from ...foundation.terminal import GatewayAddress, Json, Why
from ...model.errors import InvalidRequest, TailraceError, Unavailable
from ...sdk import found_gateway
from .letter_options import meant
from .missing_letters import missing_ids, of_function, of_ids
from .workloads import Id, label

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ...model.dead_letter import DeadLetter, LetterFilter
    from ...wire.ports.letters import LetterCounts, LetterPage, LetterPort, RedriveStep

dead = typer.Typer(
    help="Dead letters: workloads that will not be tried again.", no_args_is_help=True, rich_markup_mode=None
)

#: Letters of one step of a redrive or a purge; steps a second of a redrive with a rate; most refusals that are shown.
STEP = 500
STEPS_A_SECOND = 4.0
SHOWN = 20
#: Bytes of a payload that `show --payload` prints.
PREVIEW = 4096
#: Tries, a second apart, of a redrive under way while the gateway is away.
PATIENCE = 15

Every = Annotated[bool, typer.Option("--all", help="All letters; needed without ids and other options.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show the numbers of letters.")]


@dead.command("list")
@meant(ids=False)
def dead_list(
    which: LetterFilter,
    limit: Annotated[int, typer.Option("--limit", min=1, max=1000, help="At most so many.")] = 100,
    after: Annotated[int, typer.Option("--after", metavar="NUMBER", min=0, help="Go on after this letter.")] = 0,
    gateway: GatewayAddress = None,
    as_json: Json = False,
) -> None:
    """Dead letters, oldest first."""
    misses: list[str] = []

    async def look(client: LetterPort) -> LetterPage:
        page = await client.dead_letters(which, limit, after)
        if not page.letters:
            misses.extend(await of_function(client, which))
        return page

    letters, total = found_gateway.ask(gateway, look)
    rows = [_row(letter) for letter in letters]
    columns = ["id", "function", "outcome", "attempts", "redrives", "died_at", "reason"]
    terminal.show(rows, columns, as_json, empty="none")
    _complain(misses)
    if not as_json and len(rows) == limit:
        terminal.complain(f"{len(rows)} of {total} in all; go on with --after {letters[-1].number}")


@dead.command("show")
def dead_show(
    id: Id,
    payload: Annotated[bool, typer.Option("--payload", help=f"The payload too, its first {PREVIEW} bytes.")] = False,
    gateway: GatewayAddress = None,
    as_json: Json = False,
) -> None:
    """One dead letter with its history."""
    try:
        letter = found_gateway.ask(gateway, lambda client: client.dead_letter(id))
    except InvalidRequest as error:
        terminal.not_found(str(error))
    facts: dict[str, Any] = {**_row(letter), "payload_bytes": len(letter.payload)}
    if payload:
        facts["payload"] = letter.payload[:PREVIEW].decode("utf-8", "backslashreplace")
    history = _history(letter)
    tries = [{"at": terminal.moment(at), "outcome": outcome, "reason": why} for at, outcome, why in letter.tries]
    if as_json:
        terminal.show_json({**facts, "tries": tries, "history": history})
        return
    terminal.show_facts(facts, False)
    if tries:
        terminal.say("\nits last attempts:")
        terminal.show(tries, ["at", "outcome", "reason"], False)
    if history:
        terminal.say("\nbefore it was redriven:")
        terminal.show(history, ["died_at", "outcome", "attempts", "crashes", "progress", "reason"], False)


@dead.command("redrive")
@meant()
def dead_redrive(
    which: LetterFilter,
    every: Every = False,
    rate: Annotated[float, typer.Option("--rate", min=0, help="At most so many letters a second; 0: no limit.")] = 0.0,
    dry_run: DryRun = False,
    why: Why = "",
    gateway: GatewayAddress = None,
    as_json: Json = False,
) -> None:
    """Make dead letters workloads of their functions again, with fresh attempts. After an interruption run the command
    again. A failed item of a job that has no letter is named by its id."""
    _something("redrive", which, every)
    moved: dict[str, int] = {}
    refused: list[dict[str, str]] = []
    left: LetterFilter | None = which
    if which.ids and not dry_run:
        left = found_gateway.ask(gateway, lambda client: _redrive_lone(client, which, moved, refused, why))
    if left is not None:
        letters: LetterFilter = left
        counts = found_gateway.ask(gateway, lambda client: _counts(client, letters))
        if dry_run:
            _show_counts(counts, as_json)
            return
        total = sum(each.count for each in counts.counts)

        async def all_of_them(client: LetterPort) -> None:
            with terminal.progress("redriving", total) as advance:
                await _redrive(client, letters, rate, moved, refused, advance, why)

        try:
            found_gateway.ask(gateway, all_of_them)
        except TailraceError:
            terminal.complain(f"{sum(moved.values())} of {total} were redriven: run the same command again to go on")
            raise
    if as_json:
        terminal.show_json({"redriven": moved, "refused": refused})
    else:
        terminal.say(f"redriven: {_in_words(moved)}")
        for each in refused[:SHOWN]:
            terminal.complain(f"{terminal.cell(each['id'])} stays: {terminal.cell(each['refused'])}")
        if len(refused) > SHOWN:
            terminal.complain(f"… and {len(refused) - SHOWN} more stay")
    if refused:
        raise typer.Exit(terminal.FAILED)


async def _redrive_lone(
    client: LetterPort, which: LetterFilter, moved: dict[str, int], refused: list[dict[str, str]], why: str = ""
) -> LetterFilter | None:
    """Redrives named ids that have no letter: failed items of jobs. Returns the filter of the letters that are left;
    None: there are none."""
    from dataclasses import replace

    from ...model.dead_letter import EVERY, LetterFilter

    missing = await missing_ids(client, which)
    if not missing or replace(which, ids=(), until=0.0) != EVERY:
        return which
    reply = await client.redrive(LetterFilter(ids=tuple(missing)), STEP, why=why)
    _note(reply, moved, refused)
    done = {each.id for each in reply.letters}
    left = tuple(id for id in which.ids if id not in done)
    return replace(which, ids=left) if left else None


def _note(reply: RedriveStep, moved: dict[str, int], refused: list[dict[str, str]]) -> None:
    for each in reply.letters:
        if each.refused:
            refused.append({"id": each.id, "function": each.function, "refused": each.refused})
        else:
            moved[each.function] = moved.get(each.function, 0) + 1


async def _redrive(
    client: LetterPort,
    which: LetterFilter,
    rate: float,
    moved: dict[str, int],
    refused: list[dict[str, str]],
    advance: Callable[[int], None],
    why: str = "",
) -> None:
    """Redrives step by step, at most `rate` letters a second. Workloads that die meanwhile are not in the filter
    (letter_options.py)."""
    import asyncio

    from ...foundation.clock import SYSTEM_CLOCK

    step = STEP if not rate else max(1, min(STEP, int(rate / STEPS_A_SECOND)))
    after, turn, patience, run = 0, SYSTEM_CLOCK.monotonic(), PATIENCE, _new_run()
    while True:
        try:
            reply = await client.redrive(which, step, after, why, run)
        except Unavailable:
            if not patience:
                raise
            patience -= 1
            await asyncio.sleep(1.0)
            continue
        patience = PATIENCE
        _note(reply, moved, refused)
        advance(len(reply.letters))
        after = reply.next
        if not after:
            return
        if rate:
            turn = max(turn, SYSTEM_CLOCK.monotonic() - 1 / STEPS_A_SECOND) + len(reply.letters) / rate
            await asyncio.sleep(max(0.0, turn - SYSTEM_CLOCK.monotonic()))


@dead.command("purge")
@meant()
def dead_purge(
    which: LetterFilter,
    every: Every = False,
    dry_run: DryRun = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    why: Why = "",
    gateway: GatewayAddress = None,
    as_json: Json = False,
) -> None:
    """Delete dead letters with their payloads, for ever. Asks first."""
    _something("purge", which, every)
    counts = found_gateway.ask(gateway, lambda client: _counts(client, which))
    if dry_run:
        _show_counts(counts, as_json)
        return
    found = {each.function: each.count for each in counts.counts}
    if found and not yes:
        if not sys.stdin.isatty():
            raise InvalidRequest(f"this would delete {_in_words(found)} for ever: confirm it with --yes")
        typer.confirm(f"Delete {_in_words(found)} for ever?", abort=True, err=True)
    gone: dict[str, int] = {}
    run = _new_run()

    async def all_of_them(client: LetterPort) -> None:
        with terminal.progress("purging", sum(found.values())) as advance:
            while purged := await client.purge(which, STEP, why, run):
                for name, count in purged.items():
                    gone[name] = gone.get(name, 0) + count
                advance(sum(purged.values()))

    found_gateway.ask(gateway, all_of_them)
    if as_json:
        terminal.show_json({"purged": gone})
    else:
        terminal.say(f"purged: {_in_words(gone)}")


def _new_run() -> str:
    """Makes the id of one command's steps, by which they are recorded as one act."""
    import uuid

    return uuid.uuid4().hex


def _something(what: str, which: LetterFilter, every: bool) -> None:
    """Raises InvalidRequest for a command that would take all letters by accident."""
    from dataclasses import replace

    from ...model.dead_letter import EVERY

    if not every and replace(which, until=0.0) == EVERY:
        raise InvalidRequest(f"no letters are chosen: name ids or a filter, or give --all to {what} every letter")


async def _counts(client: LetterPort, which: LetterFilter) -> LetterCounts:
    """Counts the letters of a filter. Complains of named ids without a letter, and ends the command if none has one."""
    missing = await missing_ids(client, which)
    _complain(of_ids(missing))
    if which.ids and len(missing) == len(set(which.ids)):
        raise typer.Exit(terminal.FAILED)
    counts = await client.count_dead(which)
    if not counts.counts:
        _complain(await of_function(client, which))
    return counts


def _complain(lines: Sequence[str]) -> None:
    for line in lines:
        terminal.complain(f"tailrace: {line}")


def _show_counts(reply: LetterCounts, as_json: bool) -> None:
    rows = [
        {
            "function": each.function,
            "letters": each.count,
            "redriven_too_often": each.worn,
            "registered": each.known,
        }
        for each in reply.counts
    ]
    terminal.show(rows, ["function", "letters", "redriven_too_often", "registered"], as_json, empty="no letter fits")


def _in_words(counts: dict[str, int]) -> str:
    """Counts by function, for people."""
    total = sum(counts.values())
    if not total:
        return "none"
    listed = ", ".join(f"{count} of {terminal.cell(name) or '(no function)'}" for name, count in sorted(counts.items()))
    return f"{total} letter{'s' if total > 1 else ''} ({listed})"


def _row(letter: DeadLetter) -> dict[str, Any]:
    past = letter.past
    return {
        "id": letter.id,
        "function": letter.kind.function,
        "outcome": letter.outcome,
        "reason": letter.reason,
        "attempts": letter.attempts,
        "crashes": letter.crashes,
        "redrives": letter.redrives,
        "in_line": letter.in_line,
        "priority": label(letter.kind.priority),
        "collection": letter.kind.collection,
        "tenant": letter.kind.tenant,
        "key": letter.key,
        "headers": dict(letter.headers),
        "tailer": letter.tailer,
        "partition": letter.partition,
        "position": None if letter.position < 0 else letter.position,
        "first_tailer": past.tailer if past else letter.tailer,
        "first_id": past.id if past else letter.id,
        "first_seen": terminal.moment(letter.first_seen),
        "died_at": terminal.moment(letter.died_at),
        "progress": letter.progress,
        "number": letter.number,
    }


def _history(letter: DeadLetter) -> list[dict[str, Any]]:
    """The deaths before this one, oldest first."""
    return [
        {
            "died_at": terminal.moment(death.died_at),
            "outcome": death.outcome,
            "attempts": death.attempts,
            "crashes": death.crashes,
            "progress": death.progress,
            "reason": death.reason,
        }
        for death in (letter.past.deaths if letter.past is not None else ())
    ]
