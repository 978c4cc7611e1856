"""`tailrace simulate`: many seeds over all processors, or one with its trace."""

from __future__ import annotations

import asyncio
import os
import shlex
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from ...foundation.terminal import say, show_json
from .child import StoryOrder, Verdict
from .comparing import check, compared, read, write

#: Failing seeds that are shrunk: each takes as long as a hundred stories.
SHRINK = 3


@dataclass(frozen=True, slots=True)
class SimulateOptions:
    """The options of the command. `seed`: this one alone; else `seeds` from `first` on. `record`: the file for a record
    of the tailers' messages; `against`: the record of an earlier run to compare with."""

    seeds: int = 300
    first: int = 0
    seed: int | None = None
    trace: bool = False
    faults: list[int] | None = None
    items: list[int] | None = None
    bug: str = ""
    shrink: bool = True
    jobs: int = 0
    as_json: bool = False
    record: Path | None = None
    against: Path | None = None


def main(options: SimulateOptions) -> int:
    """Runs the command. Returns 1 when anything was wrong, or a run of an item ended otherwise than in an earlier run
    of the command. Raises UserError for a file that is no record."""
    if options.seed is not None and options.trace:
        return asyncio.run(_traced(options, options.seed))
    before = read(options.against) if options.against else []
    if options.record:
        check(options.record)
    progress = _progress if sys.stderr.isatty() and not options.as_json else _silent
    verdicts = asyncio.run(simulate(options, progress, _silent_of if options.as_json else _tell))
    wrong = [verdict for verdict in verdicts if verdict.wrong]
    records = [verdict.record for verdict in verdicts if verdict.record is not None]
    found = compared(before, records) if options.against else None
    if options.record:
        write(options.record, records)
    if options.as_json:
        show_json({**summary(verdicts), **({} if found is None else {"compared": found.facts()})})
    else:
        for verdict in wrong:
            _report(verdict, options.bug)
        say(f"{len(verdicts)} seeds: {len(wrong)} wrong, {sum(each.runs for each in verdicts)} executions")
        counts = sorted(happened(verdicts).items())
        say("; ".join(f"{what.removeprefix('fault: ')} {count}" for what, count in counts))
        if found is not None:
            say(found.text())
    return 1 if wrong or (found is not None and found.differ) else 0


def summary(verdicts: list[Verdict]) -> dict[str, Any]:
    """Figures of the run, for --json."""
    return {
        "seeds": len(verdicts),
        "wrong": [_facts(verdict) for verdict in verdicts if verdict.wrong],
        "executions": sum(verdict.runs for verdict in verdicts),
        "steps": sum(verdict.steps for verdict in verdicts),
        "longest_rest_s": round(max((verdict.rest for verdict in verdicts), default=0.0), 1),
        "happened": dict(sorted(happened(verdicts).items())),
    }


def _facts(verdict: Verdict) -> Any:
    return {key: value for key, value in msgspec.to_builtins(verdict).items() if key != "record"}


def happened(verdicts: list[Verdict]) -> Counter[str]:
    """Number of times that each kind of fault struck, and that rare events followed from them."""
    found: Counter[str] = Counter()
    for verdict in verdicts:
        found.update(verdict.happened)
    return found


async def simulate(
    options: SimulateOptions,
    progress: Callable[[int, int, int], None],
    wrong: Callable[[Verdict], None] = lambda verdict: None,
) -> list[Verdict]:
    """Tells every seed's story and returns the verdicts, by seed. `progress` is told how many are done, of how many,
    and how many were wrong; `wrong` hears of each wrong verdict as it is found."""
    if options.seed is not None:
        seeds = [options.seed]
    else:
        seeds = list(range(options.first, options.first + options.seeds))
    jobs = max(1, min(len(seeds), options.jobs or os.cpu_count() or 1))
    found: list[Verdict] = []

    def take(verdict: Verdict) -> None:
        found.append(verdict)
        if verdict.wrong:
            wrong(verdict)
        progress(len(found), len(seeds), sum(1 for each in found if each.wrong))

    shares = [seeds[share::jobs] for share in range(jobs)]
    await asyncio.gather(*(told(_order(options, share), take) for share in shares))
    found.sort(key=lambda verdict: verdict.seed)
    if options.shrink:
        again = [verdict.seed for verdict in found if verdict.wrong][:SHRINK]
        smaller: list[Verdict] = []
        await asyncio.gather(*(told(_order(options, [seed], small=True), smaller.append) for seed in again))
        for verdict in found:
            for each in smaller:
                if each.seed == verdict.seed:
                    verdict.wrong, verdict.faults, verdict.items = each.wrong, each.faults, each.items
    return found


def _order(options: SimulateOptions, seeds: list[int], *, small: bool = False, trace: bool = False) -> StoryOrder:
    record = not small and (options.record is not None or options.against is not None)
    return StoryOrder(seeds, options.faults, options.items, options.bug, small, trace, record=record)


def _command(order: StoryOrder) -> list[str]:
    text = msgspec.json.encode(order).decode()
    return [sys.executable, "-P", "-m", "tailrace.testing.simulation.child", text]


async def told(order: StoryOrder, take: Callable[[Verdict], None]) -> None:
    """Runs an order in a process and hands on its verdicts as they come."""
    process = await asyncio.create_subprocess_exec(
        *_command(order), stdout=asyncio.subprocess.PIPE, env={**os.environ, "PYTHONHASHSEED": "0"}, limit=1 << 24
    )
    assert process.stdout is not None
    try:
        async for line in process.stdout:
            take(msgspec.json.decode(line, type=Verdict))
    finally:
        if process.returncode is None and not process.stdout.at_eof():
            process.kill()
        code = await process.wait()
    if code:
        raise RuntimeError(f"a process of the simulation ended with code {code}; its output is above")


async def _traced(options: SimulateOptions, seed: int) -> int:
    order = _order(options, [seed], trace=True)
    process = await asyncio.create_subprocess_exec(*_command(order), env={**os.environ, "PYTHONHASHSEED": "0"})
    return await process.wait()


def _report(verdict: Verdict, bug: str) -> None:
    say(f"seed {verdict.seed}:")
    for line in verdict.wrong[:3]:
        say(f"  {line}")
    again = f"tailrace simulate --seed {verdict.seed} --trace" + (f" --bug {shlex.quote(bug)}" if bug else "")
    if verdict.faults is not None and verdict.items is not None:
        again += (
            f" --faults {','.join(map(str, verdict.faults)) or '-'} --items {','.join(map(str, verdict.items)) or '-'}"
        )
    say(f"  again: {again}")


def _progress(done: int, total: int, wrong: int) -> None:
    width = 30
    bar = "#" * (width * done // total)
    sys.stderr.write(f"\r[{bar:<{width}}] {done}/{total} seeds, {wrong} wrong" + ("\n" if done == total else ""))
    sys.stderr.flush()


def _silent(done: int, total: int, wrong: int) -> None:
    """Shows nothing: nobody watches."""


def _tell(verdict: Verdict) -> None:
    """Writes a wrong verdict at once: a long run that is ended early keeps what it found."""
    end = "\n" if sys.stderr.isatty() else ""  # the bar's line ends
    sys.stderr.write(f"{end}seed {verdict.seed}: {verdict.wrong[0]}\n")
    sys.stderr.flush()


def _silent_of(verdict: Verdict) -> None:
    """Shows nothing: the verdict is in the summary."""
