"""The context of a run, as its function sees it: given to a parameter annotated `tailrace.Context`.

Made only for functions that ask for it; one that does not pays nothing.
"""

from __future__ import annotations

import itertools
import logging
import time
from collections.abc import Callable, MutableMapping
from typing import TYPE_CHECKING, Any

from ..model.errors import InvalidRequest
from ..model.plain_text import plain
from ..model.workload import Headers
from .used_units import Sums, add_used, told

if TYPE_CHECKING:
    from .opened_content import Opened, Places

#: A progress note is cut at this many characters.
PROGRESS_LENGTH = 1024

_LOGGER = logging.getLogger("tailrace.function")


class _RunLogger(logging.LoggerAdapter[logging.Logger]):
    """Puts the function and the workload's id before each message, and both with the attempt in a record's `extra`."""

    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        run = self.extra or {}
        kwargs["extra"] = {**run, **(kwargs.get("extra") or {})}
        return f"[{run['tailrace_function']} {run['tailrace_id']}] {msg}", kwargs


class Context:
    """One run of one workload. Every field has a default, so that a test can make one: `Context(id="test")`.

    id         the same for every attempt
    origin     the id that it had when it first came: `id`, but for one that was redriven from its dead letter, which is
               a workload of its own. Use it to recognise what was done before
    attempt    1 for the first attempt
    crashes    number of processes that died while it ran
    fence      fencing token, a number that rises with every hand-out of this workload, and of its key, also when it is
               redriven: pass it to each store that you write to, and let the store refuse older ones
    deadline   when the timeout ends the run, in CLOCK_MONOTONIC seconds; None: no timeout
    cancelled  whether somebody asked for this run to end (`async def` functions are cancelled anyway)
    """

    __slots__ = (
        "_additions",
        "_note",
        "_payload",
        "_places",
        "_used",
        "attempt",
        "cancelled",
        "collection",
        "crashes",
        "deadline",
        "fence",
        "function",
        "headers",
        "id",
        "key",
        "origin",
        "previous_progress",
        "tenant",
    )

    def __init__(
        self,
        *,
        id: str = "",
        origin: str = "",
        function: str = "",
        attempt: int = 1,
        crashes: int = 0,
        fence: int = 0,
        deadline: float | None = None,
        headers: Headers = (),
        key: str = "",
        collection: str = "",
        tenant: str = "",
        previous_progress: str = "",
        note: Callable[[str], None] | None = None,
        payload: bytes = b"",
        places: Places | None = None,
    ) -> None:
        self.id = id
        self.origin = origin or id
        self.function = function
        self.attempt = attempt
        self.crashes = crashes
        self.fence = fence
        self.deadline = deadline
        self.headers = headers
        self.key = key
        self.collection = collection
        self.tenant = tenant
        self.previous_progress = previous_progress
        self.cancelled = False
        self._note = note
        self._payload = payload
        self._places = places
        self._used: Sums = {}
        self._additions = itertools.count()

    def next_addition(self) -> int:
        """The number of the next addition that this run makes to a job, from 0. Another attempt that adds in the same
        order gets the same numbers, by which its additions are recognised and not made again."""
        return next(self._additions)

    def open(self) -> Opened:
        """The workload's content, in pieces: `async for piece in ctx.open()`, or `for` in a `def` function. Mostly that
        is the payload. An object above `max_value` comes as a reference instead: it is streamed from the place that
        the reference names, with the access that the worker's file has for it (`objects`)."""
        from .opened_content import Opened, Places

        return Opened(self._payload, self.headers, self._places or Places())

    def time_left(self) -> float | None:
        """Seconds until the timeout (0 when it has passed); None without one."""
        if self.deadline is None:
            return None
        return max(0.0, self.deadline - time.monotonic())

    def progress(self, note: str) -> None:
        """Records how far this run has come. The note is shown by `status`, kept when the run dies, and given to the
        next attempt as `previous_progress`. Cut at 1024 characters; only the latest counts. Safe from any thread."""
        if not isinstance(note, str):
            raise InvalidRequest(f"a progress note is text, not {type(note).__name__}")
        if self._note is not None:
            self._note(plain(note, PROGRESS_LENGTH))

    def used(self, downstream: str = "", /, **units: float) -> None:
        """Records the real use of this run, of units that have a rate of their own: `ctx.used("openai", tokens=812)`,
        or without a downstream. Several calls add up; the sums are reported with the run's end, however it ends. Safe
        from any thread. Raises InvalidRequest for a wrong name or amount, and then records nothing of that call."""
        add_used(self._used, downstream, units)

    @property
    def amounts(self) -> tuple[tuple[str, str, float], ...]:
        """The sums of `used` so far: downstream, unit, amount."""
        return told(self._used) if self._used else ()

    @property
    def log(self) -> logging.LoggerAdapter[logging.Logger]:
        """A logger whose records carry the function, the id and the attempt."""
        return _RunLogger(
            _LOGGER,
            {"tailrace_function": self.function, "tailrace_id": self.id, "tailrace_attempt": self.attempt},
        )

    def __repr__(self) -> str:
        return f"<Context {self.function} {self.id} attempt {self.attempt}>"
