"""The subjects of acts as they stand before them, asked of the desk or the store that keeps each."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple

from ..model.errors import TailraceError, UserError
from ..stores.schedules.schedules import Schedules
from ..wire.ports.jobs import JobPort
from ..wire.ports.letters import LetterPort
from ..wire.ports.replays import ReplayPort
from ..wire.v1 import gateway_pb2 as pb
from .rules.acts import NAMED

#: Seconds that a look takes at most: nobody is kept from acting by it.
PATIENCE = 2.0


_LOG = logging.getLogger("tailrace.gateway.acts")


class Seen(NamedTuple):
    """The subject as it stands; None: there is none. `trouble`: why nobody can tell."""

    subject: Any = None
    trouble: str = ""


class Subjects:
    """The subjects of acts, each asked of what keeps it. What gates, quotas and tokens are is known without asking."""

    def __init__(
        self,
        status: Callable[[pb.StatusRequest], Awaitable[pb.StatusReply]],
        schedules: Schedules | None,
        letters: LetterPort,
        jobs: JobPort,
        replays: ReplayPort,
    ) -> None:
        self._status = status
        self._schedules = schedules
        self._letters = letters
        self._jobs = jobs
        self._replays = replays
        self._looks: Mapping[str, Callable[[Mapping[str, Any]], Awaitable[Any]]] = {
            "Cancel": lambda said: self._statuses(said["request"].ids[:NAMED]),
            "Reschedule": lambda said: self._statuses([said["request"].id]),
            "PutSchedule": lambda said: self._schedule(said["request"].schedule.name),
            "ChangeSchedule": lambda said: self._schedule(said["request"].name),
            "jobs.change_job": lambda said: self._jobs.job(said["tree"]),
            "jobs.retry_job": lambda said: self._jobs.job(said["tree"]),
            "letters.redrive": lambda said: self._letters.count_dead(said["which"]),
            "letters.purge": lambda said: self._letters.count_dead(said["which"]),
            "replays.change_replay": lambda said: self._replay(said["number"]),
        }

    async def look(self, call: str, arguments: Mapping[str, Any]) -> Seen:
        """Looks at what a call with these arguments is about."""
        look = self._looks.get(call)
        if look is None:
            return Seen()
        try:
            async with asyncio.timeout(PATIENCE):
                return Seen(await look(arguments))
        except UserError:  # there is none, as whoever asks is told in a moment
            return Seen()
        except (TailraceError, TimeoutError) as error:
            return Seen(trouble=f"it is not known: {str(error) or 'no answer'}")
        except Exception as error:
            _LOG.exception("what stood before %s cannot be told", call)
            return Seen(trouble=f"it is not known: {error!r}")

    async def _statuses(self, ids: list[str]) -> Any:
        return (await self._status(pb.StatusRequest(ids=ids))).statuses

    async def _schedule(self, name: str) -> Any:
        return None if self._schedules is None else await self._schedules.get(name)

    async def _replay(self, number: int) -> Any:
        return next(iter(await self._replays.replays(number)), None) if number > 0 else None
