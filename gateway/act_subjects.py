"""The subjects of acts before each act (a schedule, workloads, letters, a job, a replay), asked of their desk or
store."""

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

#: Most seconds of a look, so that it keeps nobody from acting.
PATIENCE = 2.0


_LOG = logging.getLogger("tailrace.gateway.acts")


class Seen(NamedTuple):
    """The subject as it is now; None: there is none. `trouble`: why it is not known."""

    subject: Any = None
    trouble: str = ""


class Subjects:
    """Looks up the subjects of acts. Gates, quotas and tokens are not among them: they are known without a look."""

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
        """Looks up the subject of a call with these arguments."""
        look = self._looks.get(call)
        if look is None:
            return Seen()
        try:
            async with asyncio.timeout(PATIENCE):
                return Seen(await look(arguments))
        except UserError:  # there is none, as the call itself will say
            return Seen()
        except (TailraceError, TimeoutError) as error:
            return Seen(trouble=f"it is not known: {str(error) or 'no answer'}")
        except Exception as error:
            _LOG.exception("the subject of %s could not be looked up", call)
            return Seen(trouble=f"it is not known: {error!r}")

    async def _statuses(self, ids: list[str]) -> Any:
        return (await self._status(pb.StatusRequest(ids=ids))).statuses

    async def _schedule(self, name: str) -> Any:
        return None if self._schedules is None else await self._schedules.get(name)

    async def _replay(self, number: int) -> Any:
        return next(iter(await self._replays.replays(number)), None) if number > 0 else None
