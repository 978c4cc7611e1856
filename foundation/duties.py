"""Duties (supervised tasks): the work that goes on in a part for as long as it runs. No failure of one goes unnoticed.

A duty that fails beyond its own handling is not started again by itself: it would have lost what it held between two
awaits. Its whole part is closed and opened again (`Reopening` in lifecycle.py), under a new epoch where it has one and
with everything read anew. Where each turn of a duty stands by itself, the duty tries again and only tells that it ails.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from ..model.errors import TailraceError
from ..model.plain_text import plain

#: Characters of a failure's reason that operators are shown.
LONGEST_WHY = 1000


class Duties:
    """The long-lived tasks of the part named `part`.

    `begin` starts one, `end` ends all. When one fails, `failure` returns, and `tell` is called with the reason: once,
    however many fail until then.
    """

    def __init__(self, part: str, tell: Callable[[str], None] | None = None) -> None:
        self.part = part
        self._tell = tell
        self.ailing: dict[str, tuple[float, str]] = {}  # duty → since when (monotonic), why
        self._shown_after: dict[str, float] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._failed: asyncio.Event = asyncio.Event()
        self._why = ""

    def begin(self, work: Coroutine[Any, Any, object], name: str) -> asyncio.Task[None]:
        """Starts a duty. Its task never raises but CancelledError: a failure is reported here. It may return when it
        has nothing more to do."""
        task = asyncio.create_task(self._watch(work, name), name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda _: work.close())  # it was ended before it began, or is over
        return task

    async def _watch(self, work: Coroutine[Any, Any, object], name: str) -> None:
        task = asyncio.current_task()
        assert task is not None
        try:
            await work
        except asyncio.CancelledError as error:
            if task.cancelling():
                raise
            self.failed(name, error)  # somebody else was cancelled, and it heard of that
        except Exception as error:
            self.failed(name, error)

    def failed(self, duty: str, error: BaseException) -> None:
        """Reports that a duty failed beyond its own handling. Called in the event loop, also by code that is no task.
        An error of ours says what is wrong and what to do; of another one the log has the traceback."""
        what = f"{self.part}: {duty} failed beyond its own handling"
        asyncio.get_running_loop().call_exception_handler(
            {"message": f"{what}: {error}"}
            if isinstance(error, TailraceError)
            else {"message": what, "exception": error}
        )
        if not self._failed.is_set():
            self._why = f"{duty}: {plain(error, LONGEST_WHY) or type(error).__name__}"
            self._failed.set()
            if self._tell is not None:
                self._tell(self._why)

    @property
    def why(self) -> str:
        """The duty that failed last and why, also after the end; empty: none did."""
        return self._why

    async def failure(self) -> str:
        """Waits until a duty fails. Returns its name, and why."""
        await self._failed.wait()
        return self._why

    def ails(self, duty: str, why: str, now: float, shown_after: float = 0.0) -> bool:
        """Notes that a turn of a duty failed, which tries again by itself. True: that is news. `now` is monotonic.
        Operators see it once it has lasted for `shown_after` seconds."""
        since, _ = self.ailing.get(duty, (now, ""))
        news = duty not in self.ailing
        self._shown_after[duty] = shown_after
        self.ailing[duty] = (since, plain(why, LONGEST_WHY))
        return news

    def well(self, duty: str) -> bool:
        """Notes that a turn of a duty went well. True: that is news."""
        return self.ailing.pop(duty, None) is not None

    def failing(self, now: float) -> list[tuple[float, str]]:
        """The duties that ail for long enough to be shown: since when (monotonic), and a sentence."""
        return [
            (since, f"{duty} fails, and tries again: {why}")
            for duty, (since, why) in sorted(self.ailing.items())
            if now - since >= self._shown_after[duty]
        ]

    async def end(self) -> None:
        """Ends all duties, whatever they failed with; none counts as failed from then on."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        self._failed.clear()
        self.ailing.clear()
