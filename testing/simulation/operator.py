"""The operator of some worlds: redrives dead letters as `tailrace dead redrive` does, a step at a time, and makes each
step again until it was answered."""

from __future__ import annotations

import asyncio

from ...foundation.together import together
from ...model.dead_letter import LetterFilter
from ...model.errors import Overloaded, Unavailable
from ...wire.gateway import GatewayClient
from .host import here
from .parts import GATEWAYS
from .plan import Plan, Redrive

#: Seconds in which a step must be answered, between two tries, and before what was refused is tried once more.
TIMEOUT, AGAIN, LATER = 10.0, 0.5, 6.0
#: Errors of a step that was not answered: it may have been heard.
_NotHeard = (Unavailable, Overloaded)
#: Times that an operator tries what was refused: a worker registers its function within seconds.
TRIES = 4


class Operator:
    """An operator, with its requests and the answers.

    moved   each answer: the letter's id and its workload's
    meant   of each request: the numbers and ids of the letters that there were when it was made
    stay    of each that is over: the ids of those that may stay, since they were refused or the operator gave up
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self.moved: list[tuple[str, str]] = []
        self.meant: dict[int, list[tuple[int, str]]] = {}
        self.stay: dict[int, set[str]] = {}

    async def main(self) -> None:
        """Runs the operator's process."""
        await together(*(self._redrive(place, each) for place, each in enumerate(self._plan.redrives)))

    async def _redrive(self, place: int, redrive: Redrive) -> None:
        host = here()
        await asyncio.sleep(max(0.0, redrive.at - host.world.now))
        query = "SELECT number, id FROM dead_letters WHERE ? IN ('', tailer)"
        self.meant[place] = host.disk.rows("state", query, (redrive.tailer,))
        stay: set[str] = set()
        async with GatewayClient(GATEWAYS, TIMEOUT) as client:
            for _ in range(TRIES):
                try:
                    stay = await self._all_steps(client, redrive)
                except _NotHeard:
                    stay = {id_ for _, id_ in self.meant[place]}
                    break
                if not stay:
                    break
                await asyncio.sleep(LATER)
        self.stay[place] = stay
        host.world.say(host.name, f"redrive {place} is over, {len(stay)} letters may stay")

    async def _all_steps(self, client: GatewayClient, redrive: Redrive) -> set[str]:
        """Takes all steps of a redrive. Returns the ids of the letters that were refused."""
        host, after, refused = here(), 0, set[str]()
        while True:
            try:
                reply = await client.redrive(LetterFilter(tailer=redrive.tailer), redrive.step, after)
            except _NotHeard:
                if redrive.once:
                    raise
                host.world.count("redrives made again")
                await asyncio.sleep(AGAIN)
                continue
            for each in reply.letters:
                if each.refused:
                    refused.add(each.id)
                else:
                    self.moved.append((each.id, each.workload))
                    host.world.count("letters redriven")
                    host.world.say(host.name, f"redrove {each.id}, which became {each.workload}")
            after = reply.next
            if not after:
                return refused
