"""Fates: where a world breaks nothing but what its functions do, each item ends as its own deeds and arguments deserve,
whoever it ran beside, and whichever version it came to first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set

from .journal import Journal
from .parts import RETRY
from .plan import Item, Plan
from .unexplained_runs import LOCKED


def dies(item: Item) -> bool:
    """Whether an item deserves to be a dead letter: no version takes it, or it keeps the interpreter lock again and
    again. Both versions are attached by the time that it comes."""
    deeds = [item.deed(execution) for execution in range(RETRY.max_crashes)]
    return item.fits == "neither" or all(deed.locks and deed.seconds > LOCKED for deed in deeds)


class Fates:
    """Checks the ends of all items. A Guest. `buried`: the ids of all dead letters."""

    def __init__(self, plan: Plan, journal: Journal, buried: Callable[[], Set[str]]) -> None:
        self._plan = plan
        self._journal = journal
        self._buried = buried

    def pending(self) -> Iterator[str]:
        """Nothing: the stores know what waits."""
        yield from ()

    def made(self) -> Set[str]:
        """Nothing: clients bring all items."""
        return set()

    def at_rest(self) -> None:
        """Checks that what is to die is a dead letter, and the rest is done, without an attempt that others spent."""
        stories, wrong = self._journal.stories.values(), self._journal.wrong
        done = {story.n: run.attempt for story in stories for run in story.executions if run.how == "ok"}
        for item in self._plan.items:
            if (item.n in done) == dies(item):
                wrong(f"fate: item {item.n} was {'done' if item.n in done else 'not done'}, and fits {item.fits}")
            elif done.get(item.n, 1) > 1 + sum(deed.kind == "raise" for deed in item.deeds):
                wrong(f"fate: item {item.n} was charged {done[item.n] - 1} attempts")
        if len(self._buried()) != sum(map(dies, self._plan.items)):
            wrong(f"fate: {len(self._buried())} dead letters; expected {sum(map(dies, self._plan.items))}")
