"""The hunt for known mistakes: which of them random worlds find, and after how many: `tailrace simulate --bugs`.

Mistakes take turns of a few seeds each, so that a run that is ended early says something of all of them. What was told
is kept in a file by the source it was told of; the same command goes on where it was left.
"""

from __future__ import annotations

import asyncio
import hashlib
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

import tailrace

from ...foundation.terminal import complain, show
from .child import StoryOrder, Verdict
from .run import told

#: Seeds of one turn.
TURN = 5
#: Name of no mistake: the platform as it is takes turns beside the mistakes. Its wrong worlds are nobody's finds.
NONE = ""
#: Folders of the source whose change makes another platform of it.
_SOURCE = (
    "assembly",
    "delay_service",
    "foundation",
    "gateway",
    "model",
    "runtime",
    "scheduler",
    "sdk",
    "stores",
    "tailers",
    "testing",
    "wire",
)


class HuntLine(msgspec.Struct):
    """One line of the file: so many seeds from `first` on were told of a mistake. `found` are the seeds where something
    was wrong, `what` is the first violation, and `seconds` how long they took."""

    tree: str
    bug: str
    first: int
    seeds: int
    found: list[int]
    what: list[str]
    seconds: float


@dataclass(slots=True)
class Prey:
    """A mistake that is hunted. Invariant: seeds below `following` were told, without a gap from the first one."""

    bug: str
    following: int
    seeds: int = 0
    found: list[int] = field(default_factory=list)
    what: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0

    def add(self, turn: HuntLine) -> None:
        """Adds the result of one more turn."""
        self.seeds += turn.seeds
        self.following = turn.first + turn.seeds
        self.found += turn.found
        self.what.update(turn.what)
        self.seconds += turn.seconds


@dataclass(frozen=True, slots=True)
class HuntOptions:
    """The options of the command: these `bugs`, each until it was found `finds` times or in `seeds` seeds from `first`
    on; no more turns begin after `seconds` seconds (0: without end)."""

    bugs: list[str]
    seeds: int = 10_000
    first: int = 0
    finds: int = 20
    seconds: float = 0.0
    results: Path | None = None
    jobs: int = 1
    as_json: bool = False


def main(options: HuntOptions) -> int:
    """Runs the hunt. Returns 1 when something was wrong where no mistake was planted."""
    watched = sys.stderr.isatty() and not options.as_json
    prey = asyncio.run(hunt(options, _progress if watched else _silent))
    show(report(prey, options.first), _COLUMNS, options.as_json)
    for each in prey:
        if each.bug == NONE and each.found:
            complain(f"seeds {', '.join(map(str, each.found[:5]))} were wrong, with no mistake planted")
            return 1
    return 0


async def hunt(options: HuntOptions, progress: Callable[[int, int, int], None]) -> list[Prey]:
    """Takes all turns. `progress` is told how many mistakes are done with, of how many, and how many worlds were
    told."""
    tree = tree_of(Path(tailrace.__path__[0]))
    prey = {bug: Prey(bug, options.first) for bug in (NONE, *options.bugs)}
    for turn in _before(options.results, tree):
        if turn.bug in prey and turn.first == prey[turn.bug].following:
            prey[turn.bug].add(turn)
    until = time.monotonic() + options.seconds if options.seconds else float("inf")
    out: set[str] = set()

    def open_ones() -> list[Prey]:
        control = set(prey[NONE].found)
        return [
            each
            for each in prey.values()
            if each.seeds < options.seeds and (each.bug == NONE or len(set(each.found) - control) < options.finds)
        ]

    def chosen() -> Prey | None:
        left = [each for each in open_ones() if each.bug not in out]
        if time.monotonic() >= until or not any(each.bug for each in left):
            return None  # the platform as it is need not go on alone
        return min(left, key=lambda each: each.seeds)

    async def take_turns() -> None:
        while (each := chosen()) is not None:
            out.add(each.bug)
            turn = await _turn(each, options, tree)
            out.discard(each.bug)
            each.add(turn)
            _keep(options.results, turn)
            worlds = sum(each.seeds for each in prey.values())
            progress(len(prey) - len(open_ones()), len(prey), worlds)

    await asyncio.gather(*(take_turns() for _ in range(max(1, options.jobs))))
    return list(prey.values())


async def _turn(prey: Prey, options: HuntOptions, tree: str) -> HuntLine:
    count = min(TURN, options.seeds - prey.seeds)
    finds = 0 if prey.bug == NONE else max(1, options.finds - len(prey.found))
    order = StoryOrder(list(range(prey.following, prey.following + count)), bug=prey.bug, finds=finds)
    begin = time.monotonic()
    verdicts: list[Verdict] = []
    await told(order, verdicts.append)
    wrong = [verdict for verdict in verdicts if verdict.wrong]
    return HuntLine(
        tree,
        prey.bug,
        prey.following,
        len(verdicts),
        [verdict.seed for verdict in wrong],
        [kind_of(verdict.wrong[0]) for verdict in wrong],
        round(time.monotonic() - begin, 1),
    )


def kind_of(line: str) -> str:
    """The promise that a violation breaks: its words up to the colon, without their time."""
    text = line.partition(" ")[2]
    return text.partition(":")[0] if ":" in text else text.partition(" o")[0]


_COLUMNS = ("mistake", "first_after", "found", "seeds", "seeds_per_find", "by")


def report(prey: Iterable[Prey], first: int) -> list[dict[str, Any]]:
    """A row per mistake: first the mistakes that are found soonest, last those never found."""
    known = list(prey)
    control = {seed for each in known if each.bug == NONE for seed in each.found}
    rows = []
    for each in known:
        found = [seed for seed in each.found if seed not in control or each.bug == NONE]
        rows.append(
            {
                "mistake": each.bug or "(none)",
                "first_after": found[0] - first + 1 if found else "never",
                "found": len(found),
                "seeds": each.seeds,
                "seeds_per_find": round(each.seeds / len(found), 1) if found else "",
                "by": ", ".join(what for what, _ in each.what.most_common(3)),
                "seconds": round(each.seconds),
            }
        )
    return sorted(rows, key=lambda row: (row["found"] == 0, row["seeds_per_find"] or row["seeds"], row["mistake"]))


# ---- what is kept


def tree_of(root: Path) -> str:
    """A name for the source as it is: equal sources have equal names."""
    digest = hashlib.blake2b(digest_size=8)
    for folder in _SOURCE:
        for file in sorted((root / folder).rglob("*.py")):
            digest.update(f"{file.relative_to(root)}\n".encode())
            digest.update(file.read_bytes())
    return digest.hexdigest()


def _before(results: Path | None, tree: str) -> list[HuntLine]:
    if results is None or not results.exists():
        return []
    lines = results.read_bytes().splitlines()
    return [turn for turn in (msgspec.json.decode(line, type=HuntLine) for line in lines if line) if turn.tree == tree]


def _keep(results: Path | None, turn: HuntLine) -> None:
    if results is not None:
        with results.open("ab") as file:
            file.write(msgspec.json.encode(turn) + b"\n")


def _progress(done: int, total: int, worlds: int) -> None:
    width = 30
    bar = "#" * (width * done // total)
    sys.stderr.write(f"\r[{bar:<{width}}] {done}/{total} mistakes, {worlds} worlds" + ("\n" if done == total else ""))
    sys.stderr.flush()


def _silent(done: int, total: int, worlds: int) -> None:
    """Shows nothing: nobody watches."""
