"""Single submissions that are made in one turn of the event loop share a call to the gateway, since a message costs a
client and its gateway several hundred µs, whatever it carries. No submission waits for others: a single one goes at
once, and under load those that were answered together go together again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from ..foundation.lifecycle import end_all
from ..model.errors import Overloaded, UserError
from ..wire.gateway_messages import Accepted
from .call import Call
from .submitting import new_token

#: Workloads and bytes of payload that share a call, but for a single larger one.
MOST, BYTES = 256, 1 << 20


class _Lone(NamedTuple):
    """A single submission that waits, with its caller's future. Its token identifies it whenever it is sent, with
    others or alone."""

    call: Call
    token: str
    future: asyncio.Future[Accepted]


class SharedCalls:
    """Collects the single submissions of one turn and sends them in shared calls. `submit` makes one call of several,
    each under its token: all are durable when it returns, none is known to be when it raises."""

    def __init__(self, submit: Callable[[Sequence[Call], Sequence[str]], Awaitable[list[Accepted]]]) -> None:
        self._submit = submit
        self._waiting: list[_Lone] = []
        self._running: set[asyncio.Task[None]] = set()
        self._closed: Exception | None = None

    async def submit(self, call: Call) -> Accepted:
        """Submits one workload. A refusal that it raises is of this submission, never of one that shared its call."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Accepted] = loop.create_future()
        if not self._waiting:
            loop.call_soon(self._send)
        self._waiting.append(_Lone(call, new_token(), future))
        return await future

    def _send(self) -> None:
        waiting, self._waiting = self._waiting, []
        group: list[_Lone] = []
        size = 0
        for each in waiting:
            if each.future.done():  # its caller left
                continue
            if group and (len(group) == MOST or size + len(each.call.payload) > BYTES):
                self._start(group)
                group, size = [], 0
            group.append(each)
            size += len(each.call.payload)
        if group:
            self._start(group)

    def _start(self, group: list[_Lone]) -> None:
        task = asyncio.create_task(self._make(group), name="client: a submission")
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _make(self, group: list[_Lone]) -> None:
        try:
            answers = await self._submit([each.call for each in group], [each.token for each in group])
        except Exception as error:
            parts = _apart(group, error)
            if len(parts) > 1:  # all were refused for one of them: which one it is shows when each goes alone
                await asyncio.gather(*map(self._make, parts))
                return
            for each in group:
                _tell(each.future, error)
        except asyncio.CancelledError:
            for each in group:
                _tell(each.future, self._closed or asyncio.CancelledError())
            raise
        else:
            for each, answer in zip(group, answers, strict=True):
                if not each.future.done():
                    each.future.set_result(answer)

    async def close(self, why: Exception) -> None:
        """Ends the calls under way, heard by the gateway or not; their callers get `why` raised."""
        self._closed = why
        await end_all(self._running)


def _apart(group: list[_Lone], error: Exception) -> list[list[_Lone]]:
    """The submissions that may go well without the others: each by itself, or those of each tenant where one has no
    room."""
    if isinstance(error, UserError):
        return [[each] for each in group]
    if not isinstance(error, Overloaded) or not error.of_tenant:
        return [group]
    parts: dict[str, list[_Lone]] = {}
    for each in group:
        parts.setdefault(each.call.tenant, []).append(each)
    return [*parts.values()]


def _tell(future: asyncio.Future[Accepted], error: BaseException) -> None:
    if not future.done():
        future.set_exception(error)
